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

// FaultKind is what goes wrong.
type FaultKind uint8

// The kinds of faults.
const (
	NoFault FaultKind = iota
	// Silent connects and never registers.
	Silent
	// Stranger registers with a domain that there isn't.
	Stranger
	// Future registers with a version that there isn't.
	Future
	// Mute reads commands and answers none.
	Mute
	// Stall sends half of a reply, and then nothing more.
	Stall
	// Die closes the connection in the middle of a reply.
	Die
	// Talk sends bytes behind a reply that nobody asked for.
	Talk
	// HugeSize announces a list of 4 GiB (with the RFC of as many names as can be said).
	HugeSize
	// WrongCount says that a list has one name more than it has.
	WrongCount
	// NoNUL has no NUL behind the last name of a list.
	NoNUL
	// NoUTF8 has a name in a list that is not UTF-8.
	NoUTF8
	// Refuse answers that a command is invalid, whatever it is.
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

// FaultNames are the names of all kinds.
func FaultNames() []string { return slices.Clone(faultNames[Silent:]) }

// ParseFaultKind returns the kind of a name.
func ParseFaultKind(name string) (FaultKind, error) {
	if i := slices.Index(faultNames, name); i > 0 {
		return FaultKind(i), nil
	}
	return NoFault, fmt.Errorf("expected one of %q, got %q", FaultNames(), name)
}

// Fault is what goes wrong, and when.
type Fault struct {
	Kind FaultKind
	// After is how many replies a connection is given before; where the fault is one of
	// lists, how many lists with names. It is of no meaning for faults of registrations.
	After int
	// Times is on how many connections it happens, the first ones that come so far; 0:
	// on all.
	Times int
}

// ofLists says that the fault is one of replies to List alone.
func (k FaultKind) ofLists() bool { return k >= HugeSize && k <= NoUTF8 }

// faults has things go wrong on one connection.
type faults struct {
	agent   *Agent
	replies int  // that could have gone wrong
	happens bool // has begun on this connection
}

// take says that it goes wrong now.
func (f *faults) take() bool {
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

// Where the fields of a registration stand that go wrong.
const (
	domainByte = 3
	majorByte  = 11
)

// registration sends the registration, or what goes wrong.
func (f *faults) registration(conn net.Conn, b []byte) error {
	switch kind := f.agent.options.Fault.Kind; {
	case kind != Silent && kind != Stranger && kind != Future || !f.take():
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

// write sends a reply, of so many names if it is to List, or what goes wrong. whole says
// that it was the reply.
func (f *faults) write(conn net.Conn, reply []byte, listed int) (whole bool, err error) {
	fault := f.agent.options.Fault
	canGoWrong := fault.Kind >= Mute && (listed > 0 || !fault.Kind.ofLists())
	if canGoWrong {
		f.replies++
	}
	if !canGoWrong || f.replies <= fault.After || !f.take() {
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

// errFault says that a connection ended on purpose.
var errFault = errors.New("by a fault")
