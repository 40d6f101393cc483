// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"fmt"
	"slices"
)

// Fault is what a server does wrong in place of a reply, or with it.
type Fault string

// The faults. Those of one protocol are left out in the other.
const (
	// Close closes the connection.
	Close Fault = "close"
	// Cut sends half of what is to be sent, and closes the connection.
	Cut Fault = "cut"
	// Silence has the connection say nothing any more.
	Silence Fault = "silence"
	// Failure says that a command failed, which it then has.
	Failure Fault = "failure"
	// Restart ends the process, and another one begins.
	Restart Fault = "restart"

	// LongFrame says a length that no frame has (GP).
	LongFrame Fault = "long-frame"
	// WrongLength says a length that is one too small (GP).
	WrongLength Fault = "wrong-length"
	// UnknownCode ends a command with a return code of no document (GP).
	UnknownCode Fault = "unknown-code"
	// Unsupported says that requests of the type are not known (GP).
	Unsupported Fault = "unsupported"
	// WrongVersion says that the version of the protocol is not known (GP).
	WrongVersion Fault = "wrong-version"
	// Unasked sends a reply to a request that was never sent before the one that was (GP).
	Unasked Fault = "unasked"
	// BrokenData sends data that are no JSON, however they are read (GP).
	BrokenData Fault = "broken-data"
	// Gap leaves out numbers of replies (GP).
	Gap Fault = "gap"

	// EndInData sends the byte that ends a reply in its middle (console).
	EndInData Fault = "end-in-data"
	// Half sends half of what is to be sent, and goes on with what follows (console).
	Half Fault = "half"
	// Lost ends a command without a word, as the released server does to one that comes just
	// after another one has ended (console).
	Lost Fault = "lost"
	// LongLine sends a line of a megabyte before a reply (console).
	LongLine Fault = "long-line"
)

// Faults are all there are.
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

// nextFault is what goes wrong with the next reply of any connection; empty: nothing. After
// each Options.FaultEvery replies it is the next of Options.Faults, over and over.
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
