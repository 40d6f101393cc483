// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// watched is a TCP connection that shows whether its reader waits. The state changes before a read returns. So a reader
// that has bytes, but has no processor yet, does not count as waiting.
type watched struct {
	*net.TCPConn
	raw syscall.RawConn
	// waits: the last look of the reader found no byte.
	waits atomic.Bool
	// onWait, if set, is called when the reader begins to wait.
	onWait atomic.Pointer[func()]

	// reading guards the state of the current read, in the fields below.
	reading sync.Mutex
	into    []byte
	n       int
	err     error
	// try is the method look, stored so that no read allocates.
	try func(fd uintptr) bool
}

// watch returns a watched connection. It returns conn unchanged if the system gives no access to its socket.
func watch(conn *net.TCPConn) net.Conn {
	raw, err := conn.SyscallConn()
	if err != nil {
		return conn
	}
	w := &watched{TCPConn: conn, raw: raw}
	w.try = w.look
	return w
}

// NetConn returns the wrapped connection.
func (w *watched) NetConn() net.Conn { return w.TCPConn }

func (w *watched) asksForMore() bool { return w.waits.Load() }

func (w *watched) setOnWait(f func()) { w.onWait.Store(&f) }

// Read reads like a TCP connection, with the same errors.
func (w *watched) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	w.reading.Lock()
	defer w.reading.Unlock()
	w.into, w.n, w.err = b, 0, nil
	err := w.raw.Read(w.try)
	w.into = nil
	switch {
	case err != nil:
		return 0, asRead(err)
	case w.err == nil || w.err == io.EOF:
		return w.n, w.err
	}
	return 0, &net.OpError{
		Op: "read", Net: "tcp", Source: w.LocalAddr(), Addr: w.RemoteAddr(), Err: os.NewSyscallError("read", w.err),
	}
}

// asRead returns the error of a raw read with the operation name of a connection's read.
func asRead(err error) error {
	var failed *net.OpError
	if errors.As(err, &failed) {
		failed.Op = "read"
	}
	return err
}

// look reads the received bytes, and reports false if there are none.
func (w *watched) look(fd uintptr) bool {
	w.waits.Store(false)
	for {
		n, err := syscall.Read(int(fd), w.into)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			w.waits.Store(true)
			if f := w.onWait.Load(); f != nil {
				(*f)()
			}
			return false
		case err != nil:
			w.err = err
		case n == 0:
			w.err = io.EOF
		default:
			w.n = n
		}
		return true
	}
}
