// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpUnacknowledged ends connections whose data is not acknowledged for so long. By itself TCP tries for a quarter
// of an hour when the network is cut.
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

// rawWriter writes as many bytes to a connection as the system has room for. One goroutine at a time uses it.
type rawWriter struct {
	raw                syscall.RawConn
	immediate, waiting func(fd uintptr) bool
	// b are the bytes to write, n the number of written bytes, and err why no more were written.
	b   []byte
	n   int
	err error
}

// newRawWriter returns nil for a connection that is not a plain socket.
func newRawWriter(conn net.Conn) *rawWriter {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	s := &rawWriter{raw: raw}
	// Stored, because each write would allocate them.
	s.immediate = func(fd uintptr) bool { s.try(fd); return true }
	s.waiting = func(fd uintptr) bool { s.try(fd); return !errors.Is(s.err, unix.EAGAIN) }
	return s
}

// writeWithoutWait returns the number of written bytes. It is 0 if there is no room, or the connection is broken.
func (s *rawWriter) writeWithoutWait(b []byte) int {
	n, _ := s.do(s.immediate, b)
	return n
}

// write waits until there is room for at least one byte.
func (s *rawWriter) write(b []byte) (n int, err error) { return s.do(s.waiting, b) }

func (s *rawWriter) do(try func(fd uintptr) bool, b []byte) (n int, err error) {
	s.b, s.n, s.err = b, 0, nil
	err = s.raw.Write(try)
	if err == nil && s.err != nil && !errors.Is(s.err, unix.EAGAIN) {
		err = os.NewSyscallError("write", s.err)
	}
	s.b = nil
	return s.n, err
}

func (s *rawWriter) try(fd uintptr) {
	n, err := unix.Write(int(fd), s.b)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Write(int(fd), s.b)
	}
	s.n, s.err = max(n, 0), err
}
