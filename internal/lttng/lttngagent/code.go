// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"encoding/binary"
	"fmt"
)

// Code is the result of a command in an agent's reply.
type Code uint32

// The results of known agents.
const (
	Success Code = 1
	// Invalid means that the agent cannot read the command's payload.
	Invalid Code = 2
	// UnknownName means that the logger or context to disable was not enabled by the same name or pattern. It is no
	// reply to Enable.
	UnknownName Code = 3
)

var codeNames = [...]string{Success: "success", Invalid: "invalid command", UnknownName: "unknown name"}

// String returns a description of the code.
func (c Code) String() string {
	if c == 0 || uint64(c) >= uint64(len(codeNames)) {
		return fmt.Sprintf("unknown code %d", uint32(c))
	}
	return codeNames[c]
}

// codeSize is the size of a code in bytes. In both dialects it is the whole reply to all commands except List.
const codeSize = 4

// AppendTo appends the bytes of the code. They are the whole reply to all commands except List and RegistrationDone.
func (c Code) AppendTo(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(c)) }
