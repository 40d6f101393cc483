// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
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
	// names is how many bytes both take, and those of the functions at addresses, about.
	names int
	// first is the smallest number in the batch; opened is when its first event came,
	// closed when the last batch was handed on.
	first          uint64
	opened, closed time.Time
	barriers       []callevent.Barrier
	// scratch is space to write names in.
	scratch []byte
}

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
