// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hqtest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// Pipes is a network without sockets, for tests in simulated time. Its connections hold no data: a write ends when all is read.
type Pipes struct {
	dialed chan net.Conn
	closed chan struct{}
	close  func()
}

// NewPipes returns a listener of pipes.
func NewPipes() *Pipes {
	p := &Pipes{dialed: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

// Dial connects to the listener.
func (p *Pipes) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.dialed <- far:
		return pipe{near}, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for the next connection.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialed:
		return pipe{conn}, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *Pipes) Close() error {
	p.close()
	return nil
}

// Addr returns the address of all pipes.
func (p *Pipes) Addr() net.Addr {
	near, _ := net.Pipe()
	return near.LocalAddr()
}

// pipe is a connection that reports its own end as a socket does.
type pipe struct{ net.Conn }

func (p pipe) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}
