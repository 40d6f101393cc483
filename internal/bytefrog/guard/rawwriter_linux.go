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

// rawWriter writes to a connection what the system has room for, which may be less than is
// given. It is for one goroutine at a time.
type rawWriter struct {
	raw                syscall.RawConn
	immediate, waiting func(fd uintptr) bool
	// b is what is to be written, n how much of it was, and err why no more.
	b   []byte
	n   int
	err error
}

// newRawWriter gives nil for a connection that is no socket alone.
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
	// Made once: they would be allocated for each write.
	s.immediate = func(fd uintptr) bool { s.try(fd); return true }
	s.waiting = func(fd uintptr) bool { s.try(fd); return !errors.Is(s.err, unix.EAGAIN) }
	return s
}

// writeWithoutWait doesn't wait, and gives how many bytes were written; none where there is no
// room, or the connection is broken.
func (s *rawWriter) writeWithoutWait(b []byte) int {
	n, _ := s.do(s.immediate, b)
	return n
}

// write waits until there is room for something.
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
