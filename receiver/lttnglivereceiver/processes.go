// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"cmp"
	"iter"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// What holds for the processes of all traces of a session together: with buffers for each
// process it has a trace for each.

// processes are those that are followed.
func (f *follower) processes() iter.Seq[*process] {
	return func(yield func(*process) bool) {
		for _, t := range f.traces {
			for _, p := range t.processes {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// follow notes that so many processes more are followed.
func (f *follower) follow(more int) {
	f.followed += more
	f.counts.processes.Store(int64(f.followed))
}

// forget gives up following a process that was ended.
func (p *process) forget() {
	t := p.trace
	p.forgetObjects()
	delete(t.processes, p.key)
	t.follower.follow(-1)
	if t.last == p {
		t.last = nil
	}
}

// forgetOne ends the process that was silent for longest.
func (f *follower) forgetOne() {
	var silent *process
	for p := range f.processes() {
		if silent == nil || cmp.Or(cmp.Compare(p.seen, silent.seen), bytes.Compare(p.id[:], silent.id[:])) < 0 {
			silent = p
		}
	}
	silent.end(callevent.CauseLimit)
	silent.forget()
}

// boundWaiting lets no more call events wait for names than may: the process that has
// most of them gives up.
func (f *follower) boundWaiting() {
	if f.waiting < f.env.config.Limits.MaxWaitingEvents {
		return
	}
	var most *process
	for p := range f.processes() {
		if n := len(p.addresses.waiting); most == nil || n > len(most.addresses.waiting) {
			most = p
		}
	}
	most.settleAddresses()
}
