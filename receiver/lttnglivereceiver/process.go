// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/callevent"
	"github.com/callbraid/callbraid/internal/symbols"
)

// process is a traced process, whose call events are one call stream. It is for the
// goroutine of its session.
type process struct {
	origin
	trace *trace
	key   processKey
	// begun tells it from others of the same ID: when its first event happened, in Unix
	// nanoseconds.
	begun int64

	// next is the sequence number that the next call event gets.
	next   uint64
	breaks breaks
	// started says that the process has begun to tell its state, last at that time; seen
	// is when its last event happened.
	started         bool
	startedAt, seen int64

	addresses addresses

	// What follows is made at the first call event.
	packer    *callevent.Packer
	functions map[string]*function
	lanes     map[uint64]*lane
	last      *lane
	// names is how many bytes both take, about.
	names int
	// first is the smallest number in the batch; opened is when its first event came,
	// closed when the last batch was handed on.
	first          uint64
	opened, closed time.Time
	barriers       []callevent.Barrier
	// scratch is space to write names in.
	scratch []byte
}

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
	// maxFunctions and maxLanes bound what is remembered of a process, and maxNamesBytes
	// what that of all processes of a session takes. Beyond it all is forgotten, and comes
	// again.
	maxFunctions  = 1 << 16
	maxLanes      = 1 << 16
	maxNamesBytes = 128 * mib
	// nameBytes is what a function or a lane takes beside the bytes of its names, about.
	nameBytes = 200
)

func newProcess(t *trace, key processKey, begun int64) *process {
	p := &process{
		origin: origin{
			config: t.env.config, id: streamID(t.key, t.follower.host, key, begun),
			host: t.follower.host, session: t.follower.session, pid: key.pid, hasPID: true,
		},
		trace: t, key: key, begun: begun,
		first: math.MaxUint64, closed: t.env.now(),
	}
	if t.env.files != nil {
		p.addresses.objects = symbols.NewObjects(t.env.files, symbols.DefaultMaxObjects)
	}
	return p
}

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
	class, method = start(class), start(method)
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
	name = start(name)
	if f := p.functions[string(name)]; f != nil {
		return f
	}
	return p.remember(name, name)
}

// start is what callevent.Name looks at of a name.
func start(name []byte) []byte { return name[:min(len(name), callevent.MaxNameBytes+1)] }

func (p *process) remember(qualified, display []byte) *function {
	f := &function{Function: callevent.Function{Qualified: callevent.Name(qualified), Display: callevent.Name(display)}}
	f.Text = f.Qualified
	key := f.Qualified
	if key != string(qualified) {
		key = string(qualified)
	}
	if len(p.functions) >= maxFunctions {
		p.forgetNames()
	}
	p.hold(nameBytes + len(key) + len(f.Qualified) + len(f.Display))
	p.functions[key] = f
	return f
}

// hold notes that so many bytes of names more are remembered. Where those of the session
// are too many, all its processes forget theirs.
func (p *process) hold(bytes int) {
	f := p.trace.follower
	if f.names+bytes > maxNamesBytes {
		for other := range f.processes() {
			other.forgetNames()
		}
	}
	f.names += bytes
	p.names += bytes
}

// forgetNames forgets functions and lanes. Calls that wait keep theirs, and do so no longer.
func (p *process) forgetNames() {
	p.settleAddresses()
	clear(p.functions)
	clear(p.lanes)
	p.last = nil
	p.hold(-p.names)
}
