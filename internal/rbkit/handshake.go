// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "github.com/tinylib/msgp/msgp"

// HandshakeReply describes a server (document, "Message frame for HANDSHAKE"). A missing property
// is empty.
type HandshakeReply struct {
	Dialect            Dialect
	Time               Time
	ServerVersion      string
	ProtocolVersion    string // "2.1" in both dialects
	ProcessName        string
	WorkingDirectory   string
	PID                uint64
	ObjectTraceEnabled bool
	CPUProfiling       bool
	Clock              string // "wall" or "cpu"
	CPUProfilingMode   string // "sampling"
}

// The keys of the payload of a handshake.
const (
	keyServerVersion    = "rbkit_server_version"
	keyProtocolVersion  = "rbkit_protocol_version"
	keyProcessName      = "process_name"
	keyWorkingDirectory = "pwd"
	keyPID              = "pid"
	keyObjectTrace      = "object_trace_enabled"
	keyCPUProfiling     = "cpu_profiling_enabled"
	keyClock            = "clock_type"
	keyCPUMode          = "cpu_profiling_mode"
)

// DecodeHandshake decodes the reply to Handshake. The reply shows the dialect of the server.
// Errors are *ProtocolError.
func DecodeHandshake(reply []byte) (h HandshakeReply, err error) {
	c := newCursor(reply)
	var eventType uint64
	var hasType, hasPayload bool
	for range c.mapping("a handshake: a map") {
		switch c.key() {
		case fieldType:
			eventType, hasType = c.number("the type of a message"), true
		case fieldTime:
			h.Time = c.time()
		case fieldPayload:
			hasPayload = true
			for range c.mapping("the properties of a server: a map") {
				if c.property(&h); c.err != nil {
					break
				}
			}
		default:
			c.skip()
		}
		if c.err != nil {
			return HandshakeReply{}, c.failure()
		}
	}
	switch {
	case c.err == nil && (!hasType || !hasPayload):
		c.fail(Missing, "a handshake with a type and a payload", "one without")
	case len(c.rest()) > 0:
		c.fail(Trailing, "the end of the handshake", "more bytes")
	}
	if c.err != nil {
		return HandshakeReply{}, c.failure()
	}
	if h.Dialect, err = dialectBy(eventType, handshake); err != nil {
		return HandshakeReply{}, err
	}
	return h, nil
}

// property reads one property of a server.
func (c *cursor) property(h *HandshakeReply) {
	if msgp.NextType(c.rest()) != msgp.StrType {
		c.skip()
		c.skip()
		return
	}
	text := func(to *string) { *to = string(c.text("a text")) }
	switch string(c.text("the name of a property")) {
	case keyServerVersion:
		text(&h.ServerVersion)
	case keyProtocolVersion:
		text(&h.ProtocolVersion)
	case keyProcessName:
		text(&h.ProcessName)
	case keyWorkingDirectory:
		text(&h.WorkingDirectory)
	case keyPID:
		h.PID = c.number("the ID of a process")
	case keyObjectTrace:
		h.ObjectTraceEnabled = c.flag()
	case keyCPUProfiling:
		h.CPUProfiling = c.flag()
	case keyClock:
		text(&h.Clock)
	case keyCPUMode:
		text(&h.CPUProfilingMode)
	default:
		c.skip()
	}
}
