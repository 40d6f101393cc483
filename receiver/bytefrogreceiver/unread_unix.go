// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bytefrogreceiver

import (
	"net"
	"syscall"
)

// wrapper is a connection above another.
type wrapper interface{ NetConn() net.Conn }

// unread reports whether something has come on a connection that was not read yet.
func unread(conn net.Conn) bool {
	for above, ok := conn.(wrapper); ok; above, ok = conn.(wrapper) {
		conn = above.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
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
