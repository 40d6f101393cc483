// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package socket

import (
	"net"
	"syscall"
)

// Unread reports whether a connection has received bytes that were not read yet.
func Unread(conn net.Conn) bool {
	socket, ok := Below(conn).(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		var first [1]byte
		n, _, _ = syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && n > 0
}

// MaxOpenFiles returns the number of files that the process can have open, if that is known.
func MaxOpenFiles() (limit uint64, known bool) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0, false
	}
	return uint64(files.Cur), true // some systems have signed limits
}
