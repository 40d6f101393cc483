// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"net"
	"sync"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

// connection is a connection that was accepted. It has a slot until any owner closes it.
type connection struct {
	net.Conn
	slot    *slots.Slot
	closing sync.Once
	// closed is called once, at the end of the connection.
	closed func()
}

// Close closes the connection. Further calls have no effect.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.closing.Do(func() {
		c.slot.Release()
		c.closed()
	})
	return err
}

// NetConn returns the connection below: that of TLS, or the socket.
func (c *connection) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the sending. The error is errors.ErrUnsupported if the connection cannot end one
// direction.
func (c *connection) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}
