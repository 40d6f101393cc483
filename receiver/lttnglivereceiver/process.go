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
	// functionBytes and laneBytes are how many bytes of names are remembered in each.
	functionBytes, laneBytes int
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
	// the names of each, which may be as long as a packet. Beyond it all is forgotten, and
	// comes again.
	maxFunctions  = 1 << 16
	maxLanes      = 1 << 16
	maxNamesBytes = 16 * mib
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
		l = p.rememberLane(id, validString(name))
	} else if len(name) > 0 && string(name) != l.Name {
		if valid := validString(name); valid != l.Name {
			// Batches may still refer to the lane by its old name.
			p.laneBytes -= len(l.Name)
			l = p.rememberLane(id, valid)
		}
	}
	p.last = l
	return l
}

func (p *process) rememberLane(id uint64, name string) *lane {
	if len(p.lanes) >= maxLanes || p.laneBytes+len(name) > maxNamesBytes {
		clear(p.lanes)
		p.laneBytes = 0
	}
	l := &lane{Lane: callevent.Lane{ID: id, Name: name}}
	p.lanes[id] = l
	p.laneBytes += len(name)
	return l
}

// method is the function of a class and a method, as Java has them.
func (p *process) method(class, method []byte) *function {
	p.scratch = append(p.scratch[:0], class...)
	if len(class) > 0 {
		p.scratch = append(p.scratch, '.')
	}
	p.scratch = append(p.scratch, method...)
	if f := p.functions[string(p.scratch)]; f != nil {
		return f
	}
	qualified := validString(p.scratch)
	simple := class[bytes.LastIndexByte(class, '.')+1:]
	display := validString(method)
	if len(simple) > 0 {
		display = validString(simple) + "." + display
	}
	return p.remember(qualified, display)
}

// named is the function of a name.
func (p *process) named(name []byte) *function {
	if f := p.functions[string(name)]; f != nil {
		return f
	}
	valid := validString(name)
	return p.remember(valid, valid)
}

func (p *process) remember(qualified, display string) *function {
	size := len(qualified) + len(display)
	if len(p.functions) >= maxFunctions || p.functionBytes+size > maxNamesBytes {
		clear(p.functions)
		p.functionBytes = 0
	}
	p.functionBytes += size
	f := &function{Function: callevent.Function{Qualified: qualified, Display: display, Text: qualified}}
	p.functions[qualified] = f
	return f
}
