// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
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

// Fault is a fault and its conditions.
type Fault struct {
	Kind FaultKind
	// After is the number of correct replies on a connection before the fault. For faults of lists it counts lists
	// with names. Faults of registrations ignore it.
	After int
	// Times is the number of connections with the fault, the first ones with enough replies. 0 means all.
	Times int
}

// ofLists reports whether the fault affects only replies to List.
func (k FaultKind) ofLists() bool { return k >= HugeSize && k <= NoUTF8 }

// faults simulates the fault on one connection.
type faults struct {
	agent   *Agent
	replies int  // replies that the fault can affect
	happens bool // the fault has occurred on this connection
}

// occurs reports whether the fault occurs now, and counts it.
func (f *faults) occurs() bool {
	a := f.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if !f.happens {
		times := a.options.Fault.Times
		if times > 0 && a.faults >= times {
			return false
		}
		f.happens = true
		a.faults++
	}
	a.stats.Faults++
	return true
}

// The offsets of the fields of a registration that faults change.
const (
	domainByte = 3
	majorByte  = 11
)

// registration sends the registration, with any fault.
func (f *faults) registration(conn net.Conn, b []byte) error {
	switch kind := f.agent.options.Fault.Kind; {
	case kind != Silent && kind != Stranger && kind != Future || !f.occurs():
	case kind == Silent:
		return nil
	case kind == Stranger:
		b[domainByte] = 99
	case kind == Future:
		b[majorByte] = 9
	}
	_, err := conn.Write(b)
	return err
}

// write sends a reply, with any fault. listed is the number of names if it is a reply to List. whole is true if the
// reply was sent without a fault.
func (f *faults) write(conn net.Conn, reply []byte, listed int) (whole bool, err error) {
	fault := f.agent.options.Fault
	affected := fault.Kind >= Mute && (listed > 0 || !fault.Kind.ofLists())
	if affected {
		f.replies++
	}
	if !affected || f.replies <= fault.After || !f.occurs() {
		_, err := conn.Write(reply)
		return err == nil, err
	}
	switch fault.Kind {
	case Mute:
		return false, nil
	case Stall:
		if _, err := conn.Write(reply[:len(reply)/2]); err != nil {
			return false, err
		}
		_, err := io.Copy(io.Discard, conn) // until the daemon closes
		return false, fmt.Errorf("the agent stalled in a reply, until the daemon closed: %w", errors.Join(err, errFault))
	case Die:
		_, err := conn.Write(reply[:len(reply)/2])
		return false, fmt.Errorf("the agent died in the middle of a reply: %w", errors.Join(err, errFault))
	case Refuse:
		reply = lttngagent.Invalid.AppendTo(nil)
	case Talk:
		reply = append(reply, "unasked"...)
	default:
		reply = f.agent.wrongList(reply)
	}
	_, err = conn.Write(reply)
	return false, err
}

// errFault is part of the error if a fault ended the connection.
var errFault = errors.New("by a fault")
