// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// FaultKind is what goes wrong.
type FaultKind uint8

// The kinds of faults.
const (
	NoFault FaultKind = iota
	// HangUp closes the connection in place of a packet.
	HangUp
	// Stall sends half of the reply with a packet, and then nothing more.
	Stall
	// Announce says that a packet comes, and how long it is, and sends nothing of it.
	Announce
)

// Fault is what goes wrong, and when.
type Fault struct {
	Kind FaultKind
	// After is how many packets a connection is given before.
	After int
	// Times is on how many connections it happens, the first ones that come so far.
	Times int
}

// announced is how much of the reply is sent with Announce: status, length and flags.
const announced = 12

// faultyConn is a connection on which something goes wrong.
type faultyConn struct {
	net.Conn
	server *Server
	// header is what was read of the header of the request, and rest how much of its
	// payload is to come.
	header []byte
	rest   uint64
	// packets is how many were asked for.
	packets int
}

// Sizes and places in the header of a request.
const (
	requestHeader = 16
	commandAt     = 8
)

// Read follows the requests that come, so that Write knows what it replies to.
func (c *faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for _, came := range b[:n] {
		if c.rest > 0 {
			c.rest--
			continue
		}
		if len(c.header) == requestHeader {
			c.header = c.header[:0]
		}
		if c.header = append(c.header, came); len(c.header) < requestHeader {
			continue
		}
		c.rest = binary.BigEndian.Uint64(c.header)
		if lttnglive.Command(binary.BigEndian.Uint32(c.header[commandAt:])) == lttnglive.CommandGetPacket {
			c.packets++
		}
	}
	return n, err
}

// Write sends a reply, or what goes wrong instead. Then the connection is of no use,
// but for hearing that the viewer closes it.
func (c *faultyConn) Write(b []byte) (int, error) {
	fault := c.server.options.Fault
	if c.packets <= fault.After || !c.server.takeFault() {
		return c.Conn.Write(b)
	}
	sent := 0
	switch fault.Kind {
	case HangUp:
		return 0, fmt.Errorf("hung up after %d packets: %w", fault.After, net.ErrClosed)
	case Announce:
		sent = min(announced, len(b))
	default:
		sent = len(b) / 2
	}
	n, err := c.Conn.Write(b[:sent])
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	for silence := make([]byte, 1); err == nil; {
		_, err = c.Conn.Read(silence)
	}
	return n, fmt.Errorf("stalled after %d packets, until: %w", fault.After, err)
}
