// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
)

// Request is a message from a session daemon to an agent. It may not be a valid command.
type Request struct {
	Type    CommandType
	Version uint64 // of the command. Agents ignore it
	Payload []byte
}

// maxPayload bounds the payload of a command, in bytes: twice the longest one that AppendCommand makes.
const maxPayload = 2 * (8 + nameFieldSize + 4 + MaxFilter + 1)

// ReadRequest reads a request of a session daemon. A payload of an impossible size is a *ProtocolError. Errors of the
// connection are as with Agent.ReadCode.
func (d Dialect) ReadRequest(from *bufio.Reader) (Request, error) {
	r := &reading{from: from}
	h, err := r.next(d.headerSize(), "the header of a command")
	if err != nil {
		return Request{}, err
	}
	size, q := binary.BigEndian.Uint64(h), Request{}
	if d == RFC {
		q.Type = CommandType(min(binary.BigEndian.Uint64(h[8:]), math.MaxUint32))
		q.Version = binary.BigEndian.Uint64(h[16:])
	} else {
		q.Type = CommandType(binary.BigEndian.Uint32(h[8:]))
		q.Version = uint64(binary.BigEndian.Uint32(h[12:]))
	}
	if size > maxPayload {
		return Request{}, &ProtocolError{0, fmt.Sprintf("a payload of at most %d bytes", maxPayload), fmt.Sprint(size)}
	}
	q.Payload, err = r.bytes(int(size), "the payload of a command")
	return q, err
}

// Command returns the command in the request to an agent of a dialect. A command that the dialect does not have, or
// an invalid payload, is a *ProtocolError. As with real agents, bytes after the payload's parts are ignored.
func (q Request) Command(d Dialect) (c Command, err error) {
	p := payload{rest: q.Payload, offset: d.headerSize()}
	switch {
	case q.Type == CommandList:
		c = List{}
	case q.Type == CommandEnable && d == RFC:
		c = Enable{Logger: p.pattern()}
	case q.Type == CommandEnable:
		c = p.enable()
	case q.Type == CommandDisable:
		c = Disable{Logger: p.pattern()}
	case q.Type == CommandRegistrationDone && d != RFC:
		c = RegistrationDone{}
	case q.Type == CommandEnableContext && d != RFC:
		c = EnableContext{Context: p.context()}
	case q.Type == CommandDisableContext && d != RFC:
		c = DisableContext{Context: p.context()}
	default:
		return nil, &ProtocolError{8, "a command of dialect " + d.String(), fmt.Sprint(uint32(q.Type))}
	}
	return c, p.err
}
