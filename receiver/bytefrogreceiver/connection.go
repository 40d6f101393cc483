// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"net"
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

// connection is a connection that was accepted. It has a slot until it is closed,
// whoever has it then.
type connection struct {
	net.Conn
	slot    *slots.Slot
	closing sync.Once
	// closed is called once.
	closed func()
}

// Close closes the connection; more than once does no harm.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.closing.Do(func() {
		c.slot.Release()
		c.closed()
	})
	return err
}

// NetConn is the connection below: TLS's, or the socket.
func (c *connection) NetConn() net.Conn { return c.Conn }

// CloseWrite says that nothing more will be sent. The error is errors.ErrUnsupported
// where a connection can't say so.
func (c *connection) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}
