// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"fmt"
	"slices"
)

// FaultKind is the kind of a fault.
type FaultKind uint8

// The kinds of faults.
const (
	NoFault FaultKind = iota
	// Silent connects and never registers.
	Silent
	// Stranger registers with an unknown domain.
	Stranger
	// Future registers with an unknown version.
	Future
	// Mute reads commands and answers none.
	Mute
	// Stall sends half of a reply, and then nothing more.
	Stall
	// Die closes the connection in the middle of a reply.
	Die
	// Talk sends unexpected bytes after a reply.
	Talk
	// HugeSize announces a list of 4 GiB (with the RFC of the maximum number of names).
	HugeSize
	// WrongCount announces one name more than the list has.
	WrongCount
	// NoNUL omits the NUL after the last name of a list.
	NoNUL
	// NoUTF8 sends a name in a list that is not UTF-8.
	NoUTF8
	// Refuse replies to every command that it is invalid.
	Refuse
)

var faultNames = []string{
	NoFault: "", Silent: "silent", Stranger: "stranger", Future: "future", Mute: "mute", Stall: "stall", Die: "die",
	Talk: "talk", HugeSize: "huge-size", WrongCount: "wrong-count", NoNUL: "no-nul", NoUTF8: "no-utf8", Refuse: "refuse",
}

func (k FaultKind) String() string {
	if int(k) >= len(faultNames) {
		return fmt.Sprintf("fault %d", uint8(k))
	}
	return faultNames[k]
}

// FaultNames returns the names of all kinds.
func FaultNames() []string { return slices.Clone(faultNames[Silent:]) }

// ParseFaultKind returns the kind of a name.
func ParseFaultKind(name string) (FaultKind, error) {
	if i := slices.Index(faultNames, name); i > 0 {
		return FaultKind(i), nil
	}
	return NoFault, fmt.Errorf("expected one of %q, got %q", FaultNames(), name)
}

// ofLists reports whether the fault affects only replies to List.
func (k FaultKind) ofLists() bool { return k >= HugeSize && k <= NoUTF8 }

// Fault is a fault and its conditions.
type Fault struct {
	Kind FaultKind
	// After is the number of correct replies on a connection before the fault. For faults of lists it counts lists
	// with names. Faults of registrations ignore it.
	After int
	// Times is the number of connections with the fault, the first ones with enough replies. 0 means all.
	Times int
}
