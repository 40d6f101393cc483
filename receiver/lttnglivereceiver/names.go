// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// What is remembered of the functions and threads of a process, so that batches refer to each
// by one entry.

// function is a function in the tables of batches.
type function struct {
	callevent.Function
	index      uint16
	generation uint32
}

// lane is a thread, or a key, in the tables of batches.
type lane struct {
	callevent.Lane
	index      uint16
	generation uint32
}

const (
	// maxFunctions and maxLanes bound what is remembered of a process, and
	// limits.max_names_bytes what that of all processes of a session takes. Beyond it all is
	// forgotten, and comes again.
	maxFunctions = 1 << 16
	maxLanes     = 1 << 16
	// nameBytes is what a function or a lane takes beside the bytes of its names, about.
	nameBytes = 140
)

// laneOf is the lane of an ID with the name that it has now; without a name, the last
// one stays.
func (p *process) laneOf(id uint64, name []byte) *lane {
	l := p.last
	if l == nil || l.ID != id {
		l = p.lanes[id]
	}
	if l == nil {
		l = p.rememberLane(id, callevent.Name(name))
	} else if len(name) > 0 && string(name) != l.Name {
		if valid := callevent.Name(name); valid != l.Name {
			// Batches, and calls that wait, may still refer to the lane by its old name.
			if len(p.addresses.waiting) == 0 {
				p.hold(-nameBytes - len(l.Name))
			}
			l = p.rememberLane(id, valid)
		}
	}
	p.last = l
	return l
}

func (p *process) rememberLane(id uint64, name string) *lane {
	if len(p.lanes) >= maxLanes {
		p.forgetNames()
	}
	p.hold(nameBytes + len(name))
	l := &lane{Lane: callevent.Lane{ID: id, Name: name}}
	p.lanes[id] = l
	return l
}

// method is the function of a class and a method, as Java has them.
func (p *process) method(class, method []byte) *function {
	class, method = beginning(class), beginning(method)
	p.scratch = append(p.scratch[:0], class...)
	if len(class) > 0 {
		p.scratch = append(p.scratch, '.')
	}
	p.scratch = append(p.scratch, method...)
	if f := p.functions[string(p.scratch)]; f != nil {
		return f
	}
	// Shown are the last part of the class, if it has a name, and the method.
	simple := bytes.LastIndexByte(class, '.') + 1
	if simple > 0 && simple == len(class) {
		simple++
	}
	return p.remember(p.scratch, p.scratch[simple:])
}

// named is the function of a name.
func (p *process) named(name []byte) *function {
	name = beginning(name)
	if f := p.functions[string(name)]; f != nil {
		return f
	}
	return p.remember(name, name)
}

// beginning is what callevent.Name looks at of a name.
func beginning(name []byte) []byte { return start(name, callevent.MaxNameBytes+1) }

// start is the first bytes of a text, most at the most.
func start(text []byte, most int) []byte { return text[:min(len(text), most)] }

func (p *process) remember(qualified, display []byte) *function {
	f := &function{Function: callevent.Function{Qualified: callevent.Name(qualified), Display: callevent.Name(display)}}
	f.Text = f.Qualified
	key, bytes := f.Qualified, nameBytes+len(f.Qualified)+len(f.Display)
	if key != string(qualified) {
		key = string(qualified)
		bytes += len(key)
	}
	if len(p.functions) >= maxFunctions {
		p.forgetNames()
	}
	p.hold(bytes)
	p.functions[key] = f
	return f
}

// hold notes that so many bytes of names more are remembered.
func (p *process) hold(bytes int) {
	f := p.trace.follower
	if f.names+bytes > f.env.config.Limits.MaxNamesBytes {
		f.forgetNames()
	}
	f.names += bytes
	p.names += bytes
	f.remembered(bytes)
}

// forgetNames has all processes of the session forget their names, which have no room.
// Calls that wait keep theirs until they are packed, which they are then.
func (f *follower) forgetNames() {
	forgotten := 0
	for p := range f.processes() {
		forgotten += len(p.functions) + len(p.lanes) + len(p.addresses.known)
		p.clearNames()
	}
	f.env.telemetry.namesForgotten(int64(forgotten))
	f.noteNames(forgotten)
	if f.forgetting {
		// What waits is being packed: not one process inside of the other.
		return
	}
	f.forgetting = true
	for p := range f.processes() {
		p.settleAddresses()
	}
	f.forgetting = false
}

// forgetNames forgets functions and lanes. Calls that wait keep theirs, and do so no longer.
func (p *process) forgetNames() {
	p.settleAddresses()
	p.clearNames()
}

func (p *process) clearNames() {
	clear(p.functions)
	clear(p.lanes)
	p.last = nil
	p.forgetAddresses()
	p.hold(-p.names)
}
