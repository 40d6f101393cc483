// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"fmt"
	"slices"
)

// Fault is an error of the server that replaces or changes a reply.
type Fault string

// The faults. A protocol ignores the faults of the other one.
const (
	// Close closes the connection.
	Close Fault = "close"
	// Cut sends half of a reply and closes the connection.
	Cut Fault = "cut"
	// Silence stops all sending on the connection.
	Silence Fault = "silence"
	// Failure reports that a command failed, and ends the command.
	Failure Fault = "failure"
	// Restart ends the process and starts another one.
	Restart Fault = "restart"

	// LongFrame sends an impossible length (GP).
	LongFrame Fault = "long-frame"
	// WrongLength sends a length that is one too small (GP).
	WrongLength Fault = "wrong-length"
	// UnknownCode ends a command with an undocumented return code (GP).
	UnknownCode Fault = "unknown-code"
	// Unsupported reports an unknown request type (GP).
	Unsupported Fault = "unsupported"
	// WrongVersion reports an unsupported version of the protocol (GP).
	WrongVersion Fault = "wrong-version"
	// Unasked sends a reply to an unknown request before a reply (GP).
	Unasked Fault = "unasked"
	// BrokenData sends data that are neither JSON nor YAML (GP).
	BrokenData Fault = "broken-data"
	// Gap skips numbers of replies (GP).
	Gap Fault = "gap"

	// EndInData sends the end-of-reply byte in the middle of a reply (console).
	EndInData Fault = "end-in-data"
	// Half sends half of a reply and then the following ones (console).
	Half Fault = "half"
	// Lost ends a command without a reply, as the released server does to a command that arrives just after the end of
	// another one (console).
	Lost Fault = "lost"
	// LongLine sends a line of one megabyte before a reply (console).
	LongLine Fault = "long-line"
)

// Faults returns all faults.
func Faults() []Fault {
	return []Fault{
		Close, Cut, Silence, Failure, Restart,
		LongFrame, WrongLength, UnknownCode, Unsupported, WrongVersion, Unasked, BrokenData, Gap,
		EndInData, Half, Lost, LongLine,
	}
}

func (f Fault) check() error {
	if !slices.Contains(Faults(), f) {
		return fmt.Errorf("fault %q: expected one of %q", f, Faults())
	}
	return nil
}

// nextFault returns the fault of the next reply on any connection; empty means none. After each Options.FaultEvery
// replies it is the next one of Options.Faults, cyclically.
func (s *Server) nextFault() Fault {
	if len(s.options.Faults) == 0 || s.options.FaultEvery <= 0 {
		return ""
	}
	n := s.replies.Add(1)
	every := int64(s.options.FaultEvery)
	before := n/every - 1
	if n%every != 0 || s.options.FaultTimes > 0 && before >= int64(s.options.FaultTimes) {
		return ""
	}
	return s.options.Faults[before%int64(len(s.options.Faults))]
}
