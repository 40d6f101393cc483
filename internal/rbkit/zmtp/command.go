// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// Names of commands: of the handshake (RFC 23, 24), and of the traffic (RFC 37).
const (
	commandReady     = "READY"
	commandError     = "ERROR"
	commandHello     = "HELLO"
	commandWelcome   = "WELCOME"
	commandInitiate  = "INITIATE"
	commandPing      = "PING"
	commandPong      = "PONG"
	commandSubscribe = "SUBSCRIBE"
	commandCancel    = "CANCEL"
)

// maxCommand bounds the bytes of a command. It is no rule of the protocol: the longest useful
// commands have metadata with some properties, or subscriptions.
const maxCommand = 64 << 10

// command is the body of a command frame.
type command struct {
	name string
	data []byte
	// dataOffset is where data begins, from the first byte of the connection.
	dataOffset int64
}

// brokenError is the begin of an ERROR command of libzmq's PLAIN server, for example 4.3.4. An
// error in its source merges the length of the name with its first letter.
const brokenError = "^RROR"

// parseCommand reads the body of a command frame that begins at offset.
func parseCommand(b []byte, offset int64) (command, *ProtocolError) {
	if bytes.HasPrefix(b, []byte(brokenError)) && len(b) < 1+int(brokenError[0]) {
		n := len(brokenError)
		return command{name: commandError, data: b[n:], dataOffset: offset + int64(n)}, nil
	}
	if len(b) == 0 || b[0] == 0 || len(b) < 1+int(b[0]) {
		return command{}, &ProtocolError{Offset: offset, Expected: "the name of a command", Got: fmt.Sprintf("%d bytes: %s", len(b), quoted(b))}
	}
	n := 1 + int(b[0])
	return command{name: commandName(b[1:n]), data: b[n:], dataOffset: offset + int64(n)}, nil
}

// commandName returns the name as a string. Known names cost no memory.
func commandName(b []byte) string {
	for _, name := range [...]string{commandPing, commandPong, commandSubscribe, commandCancel, commandError} {
		if string(b) == name {
			return name
		}
	}
	return string(b)
}

// appendCommand appends the frame of a command.
func appendCommand(b []byte, name string, data ...[]byte) []byte {
	size := 1 + len(name)
	for _, d := range data {
		size += len(d)
	}
	b = appendHeader(b, flagCommand, size)
	b = append(append(b, byte(len(name))), name...)
	for _, d := range data {
		b = append(b, d...)
	}
	return b
}

// ping is the data of a PING: a time to live, and a context that PONG has to repeat.
type ping struct {
	ttl     time.Duration // the sender is gone after such a silence; 0: unknown
	context []byte
}

// Sizes of a PING's data, and the unit of its time to live (RFC 37, "Heartbeating").
const (
	pingTTLSize    = 2
	maxPingContext = 16
	pingTTLUnit    = 100 * time.Millisecond
)

func parsePing(c command) (ping, *ProtocolError) {
	if len(c.data) < pingTTLSize || len(c.data) > pingTTLSize+maxPingContext {
		return ping{}, &ProtocolError{
			Offset:   c.dataOffset,
			Expected: fmt.Sprintf("a PING of a time to live and at most %d bytes", maxPingContext),
			Got:      fmt.Sprintf("%d bytes", len(c.data)),
		}
	}
	return ping{
		ttl:     time.Duration(binary.BigEndian.Uint16(c.data)) * pingTTLUnit,
		context: c.data[pingTTLSize:],
	}, nil
}

// appendPing appends a PING without a time to live, because we may be silent for long while a
// message is handled.
func appendPing(b []byte) []byte { return appendCommand(b, commandPing, make([]byte, pingTTLSize)) }

// refusal returns the error of an ERROR command, whose data is a length of one byte, and the
// reason.
func refusal(c command) error {
	reason := c.data
	if len(reason) > 0 {
		reason = reason[1:min(1+int(reason[0]), len(reason))]
	}
	return &RefusedError{Reason: string(reason)}
}

// quoted returns the begin of b for an error text.
func quoted(b []byte) string {
	const most = 32
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}
