// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"encoding/binary"
	"fmt"
)

// Code is an agent's answer to a command.
type Code uint32

// The answers that agents are known to give.
const (
	Success Code = 1
	// Invalid says that the agent can make nothing of the command's payload.
	Invalid Code = 2
	// UnknownName says that what is to be disabled was not enabled: a logger, by that
	// very name or pattern, or a context. It is no answer to Enable.
	UnknownName Code = 3
)

var codeNames = [...]string{Success: "success", Invalid: "invalid command", UnknownName: "unknown name"}

// String is the code's meaning in words.
func (c Code) String() string {
	if c == 0 || uint64(c) >= uint64(len(codeNames)) {
		return fmt.Sprintf("unknown code %d", uint32(c))
	}
	return codeNames[c]
}

// codeSize is the size in bytes of a code: in both dialects the whole reply to all but
// List.
const codeSize = 4

// AppendTo appends the code as it is sent: the whole reply to all commands but List and
// RegistrationDone.
func (c Code) AppendTo(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(c)) }
