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

// FaultKind is the kind of a fault.
type FaultKind uint8

// The kinds of faults.
const (
	NoFault FaultKind = iota
	// HangUp closes the connection in place of a packet.
	HangUp
	// Stall sends half of the reply with a packet, and then nothing more.
	Stall
	// Announce sends the length of a packet, and then no data.
	Announce
)

// Fault is a fault and its conditions.
type Fault struct {
	Kind FaultKind
	// After is the number of packets on a connection before the fault.
	After int
	// Times is the number of connections with the fault, the first ones with enough packets.
	Times int
}

// announced is the size of the reply's part that Announce sends: status, length and flags.
const announced = 12

// faultyConn is a connection with a fault.
type faultyConn struct {
	net.Conn
	server *Server
	// header is the received part of the request's header. rest is the number of bytes of its payload that have not
	// arrived.
	header []byte
	rest   uint64
	// packets is the number of requests for packets.
	packets int
}

// Sizes and offsets in the header of a request.
const (
	requestHeader = 16
	commandAt     = 8
)

// Read parses the requests, because Write needs the number of requested packets.
func (c *faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for _, received := range b[:n] {
		if c.rest > 0 {
			c.rest--
			continue
		}
		if len(c.header) == requestHeader {
			c.header = c.header[:0]
		}
		if c.header = append(c.header, received); len(c.header) < requestHeader {
			continue
		}
		c.rest = binary.BigEndian.Uint64(c.header)
		if lttnglive.Command(binary.BigEndian.Uint32(c.header[commandAt:])) == lttnglive.CommandGetPacket {
			c.packets++
		}
	}
	return n, err
}

// Write sends a reply, or the fault. After a fault it only waits until the viewer closes the connection.
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
