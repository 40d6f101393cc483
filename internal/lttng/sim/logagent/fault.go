// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

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
