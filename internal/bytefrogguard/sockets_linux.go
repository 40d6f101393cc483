// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogguard

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpUnacknowledged has connections end when what was sent is not acknowledged for so
// long: TCP itself tries for a quarter of an hour when the network is cut.
func giveUpUnacknowledged(after time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
		})
		if err != nil {
			return err
		}
		return failed
	}
}

// attempt writes to a socket as much as the system takes at once. It is for one goroutine at
// a time.
type attempt struct {
	raw syscall.RawConn
	try func(fd uintptr) bool
	// b is what is to be written, and n how much of it was.
	b []byte
	n int
}

// newAttempt gives nil for a connection that is no socket alone.
func newAttempt(conn net.Conn) *attempt {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	a := &attempt{raw: raw}
	a.try = a.once // made once: it would be allocated for each write
	return a
}

// write gives how many bytes were written; none where there is no room, or the connection
// is broken.
func (a *attempt) write(b []byte) int {
	a.b, a.n = b, 0
	if a.raw.Write(a.try) != nil {
		return 0
	}
	return a.n
}

// once always reports that it is done: it doesn't wait for room.
func (a *attempt) once(fd uintptr) bool {
	n, err := unix.Write(int(fd), a.b)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Write(int(fd), a.b)
	}
	a.n = max(n, 0)
	return true
}
