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

// watched is a TCP connection that shows whether its reader waits. The state changes before
// the system gives a byte away: a read that has returned, in a goroutine that the machine does
// not run yet, is not taken for a wait.
type watched struct {
	*net.TCPConn
	raw syscall.RawConn
	// waits says that the last look of the reader found nothing.
	waits atomic.Bool
	// onWait, if set, is called when the reader begins to wait.
	onWait atomic.Pointer[func()]

	// reading guards what follows: the read that goes on.
	reading sync.Mutex
	into    []byte
	n       int
	err     error
	// try is look, made once: no read allocates.
	try func(fd uintptr) bool
}

// watch returns the connection itself where the system gives no access to its socket.
func watch(conn *net.TCPConn) net.Conn {
	raw, err := conn.SyscallConn()
	if err != nil {
		return conn
	}
	w := &watched{TCPConn: conn, raw: raw}
	w.try = w.look
	return w
}

// NetConn is the connection below.
func (w *watched) NetConn() net.Conn { return w.TCPConn }

func (w *watched) asksForMore() bool { return w.waits.Load() }

func (w *watched) setOnWait(f func()) { w.onWait.Store(&f) }

// Read reads as a TCP connection does, with the same errors.
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

// asRead is an error of a raw read with the operation that a connection names.
func asRead(err error) error {
	var failed *net.OpError
	if errors.As(err, &failed) {
		failed.Op = "read"
	}
	return err
}

// look reads what is there, and reports false if nothing is.
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
