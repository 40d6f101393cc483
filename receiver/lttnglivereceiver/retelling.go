// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"slices"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// retelling is a process that tells its state though it has done so before. Tracing was
// stopped and started, or the ID is that of another process now. What is loaded where
// shows which: systems load the objects of each process at other places, and an ID
// comes again only when many others have been used. Where they don't, two processes with
// the same program go as one, with a break between.
type retelling struct {
	// before are the objects that were told before; nil: nothing is told again.
	before []symbols.Mapping
	// from is the number of the first call event since it began, at the time nanos.
	from  uint64
	nanos int64
	// program is the name that it tells.
	program string
}

// resumes reports whether an event says that a process is traced again.
func (t *trace) resumes(e *ctf.Event) bool {
	p := t.plan(e.Class)
	if p.notice.kind != noticeStart {
		return false
	}
	key, ok := t.keyOf(p, e)
	if !ok {
		return false
	}
	process := t.processes[key]
	return process != nil && process.addresses.listed
}

// retells notes that a process begins to tell its state again. It returns false if there
// is nothing to compare it with.
func (p *process) retells(nanos int64) bool {
	a := &p.addresses
	if !a.listed || len(a.told) == 0 {
		return false
	}
	a.again = retelling{before: a.told, from: p.next, nanos: nanos}
	a.told = nil
	if !p.breaks.isOpen && p.packer != nil {
		p.breaks.add(callevent.Point(p.next, callevent.CauseSuspended))
	}
	p.startedAt = nanos
	return true
}

// isSame reports whether most of the objects that both lists have are at the same place.
func (r *retelling) isSame(told []symbols.Mapping) bool {
	same, moved := 0, 0
	for _, m := range told {
		switch {
		case slices.ContainsFunc(r.before, func(old symbols.Mapping) bool { return old.Path == m.Path && old.Base == m.Base }):
			same++
		case slices.ContainsFunc(r.before, func(old symbols.Mapping) bool { return old.Path == m.Path }):
			moved++
		}
	}
	return same > moved
}

// retold is called when a process has told its state again.
func (p *process) retold() {
	a := &p.addresses
	again := a.again
	a.again = retelling{}
	if !again.isSame(a.told) {
		p.trace.replace(p, again)
		return
	}
	for i := range again.before {
		old := &again.before[i]
		p.holdObjects(-bytesOf(old))
		if !slices.ContainsFunc(a.told, func(m symbols.Mapping) bool { return m.Base == old.Base }) {
			a.objects.Unmap(old.Base)
		}
	}
	p.forgetAddresses()
	a.listed = true
	p.settleAddresses()
}

// replace ends a process whose ID another one has had since it began to tell its state.
// That one gets the calls that wait for names; others of it are not paired.
func (t *trace) replace(old *process, again retelling) {
	told, waiting := old.addresses.told, old.takeWaiting()
	old.breaks.finish(old.next)
	old.breaks.add(callevent.Interval(again.from, old.next, callevent.CauseSuspended))
	old.end(callevent.CauseEnded)
	old.forgetObjects()

	p := newProcess(t, old.key, again.nanos)
	p.program, p.started, p.startedAt, p.seen = again.program, true, again.nanos, old.seen
	if p.program == "" {
		p.program = old.program
	}
	p.recall(told)
	if t.losses > 0 {
		p.breaks.begin(p.next, t.lossCause)
	}
	t.processes[p.key], t.last = p, p
	if len(waiting) == 0 {
		return
	}
	if err := p.openPacker(); err != nil {
		t.follower.cannotPack(err)
		return
	}
	for i := range waiting {
		w := &waiting[i]
		p.pack(w.kind, p.number(), w.nanos, p.function(w.address), p.laneOf(w.lane.ID, []byte(w.lane.Name)), nil)
	}
}
