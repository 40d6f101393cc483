// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"encoding/binary"
	"fmt"
)

// Agent is the receiver of commands: its dialect and its domain.
type Agent struct {
	Dialect Dialect
	Domain  Domain // JUL with RFC
}

// UnsupportedError means that an agent does not support a command, or a part of it. The command would end the thread
// of the agent, or its connection.
type UnsupportedError struct {
	Command CommandType
	Reason  string // the unsupported part, and the kind of agent
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s cannot be sent: %s", e.Command, e.Reason)
}

// Supports returns nil if the agent supports the command with all its parts, or an *UnsupportedError.
func (a Agent) Supports(c Command) error {
	refuse := func(reason string) error { return &UnsupportedError{Command: c.Type(), Reason: reason} }
	switch c := c.(type) {
	case Enable:
		if a.Dialect == RFC && c.Levels != (Levels{}) {
			return refuse("agents of the RFC have no levels")
		}
		if a.Dialect == RFC && c.Filter != (Filter{}) {
			return refuse("agents of the RFC have no filters")
		}
	case RegistrationDone:
		if a.Dialect == RFC {
			return refuse("agents of the RFC do not register")
		}
	case EnableContext:
		return a.supportsContext(c.Context, refuse)
	case DisableContext:
		return a.supportsContext(c.Context, refuse)
	}
	return nil
}

func (a Agent) supportsContext(c Context, refuse func(reason string) error) error {
	switch {
	case a.Dialect == RFC:
		return refuse("agents of the RFC have no contexts")
	case a.Domain == Python:
		return refuse("Python's agent has no contexts")
	case c == Context{}:
		return refuse("the context has no name")
	}
	return nil
}

// AppendCommand appends a command with its header. The result must be sent in one piece, because Python's agent
// treats the result of one read as a whole command. It fails if Supports does.
func (a Agent) AppendCommand(b []byte, c Command) ([]byte, error) {
	if err := a.Supports(c); err != nil {
		return b, err
	}
	start, header := len(b), a.Dialect.headerSize()
	b = append(b, make([]byte, header)...)
	b = c.appendPayload(b, a)
	size := uint64(len(b) - start - header)
	binary.BigEndian.PutUint64(b[start:], size)
	if a.Dialect == RFC {
		binary.BigEndian.PutUint64(b[start+8:], uint64(c.Type()))
	} else {
		binary.BigEndian.PutUint32(b[start+8:], uint32(c.Type()))
	}
	return b, nil // the command's version is 0 in both
}

func (List) appendPayload(b []byte, _ Agent) []byte             { return b }
func (RegistrationDone) appendPayload(b []byte, _ Agent) []byte { return b }

func (c Enable) appendPayload(b []byte, to Agent) []byte {
	if to.Dialect == RFC {
		return appendNameField(b, c.Logger)
	}
	level := c.Levels.level
	if c.Levels.kind == AllLevels {
		level = everyLevel
	}
	b = binary.BigEndian.AppendUint32(b, uint32(level))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Levels.kind))
	b = appendNameField(b, c.Logger)
	if c.Filter.text == "" {
		return binary.BigEndian.AppendUint32(b, 0)
	}
	return appendCountedText(b, c.Filter.text)
}

func (c Disable) appendPayload(b []byte, _ Agent) []byte        { return appendNameField(b, c.Logger) }
func (c EnableContext) appendPayload(b []byte, _ Agent) []byte  { return appendContext(b, c.Context) }
func (c DisableContext) appendPayload(b []byte, _ Agent) []byte { return appendContext(b, c.Context) }

// appendNameField appends a pattern as a field of fixed size, padded with NULs.
func appendNameField(b []byte, p Pattern) []byte {
	end := len(b) + nameFieldSize
	b = append(b, p.text...)
	return append(b, make([]byte, end-len(b))...)
}

func appendContext(b []byte, c Context) []byte {
	return appendCountedText(appendCountedText(b, c.provider), c.name)
}

// appendCountedText appends the size of a text including its NUL, and then both.
func appendCountedText(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)+1))
	b = append(b, text...)
	return append(b, 0)
}
