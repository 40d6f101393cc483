// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"slices"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callstream"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
)

// ruleUse counts the event classes of a call rule: those with all fields that the rule needs, and those that lack one.
// missing are the fields of attributes and error_field that no known class has.
type ruleUse struct {
	entries, exits classCount
	missing        []mapping.Detail
}

type classCount struct{ complete, lacking int }

// isLacking reports whether no known class can be paired, and at least one is known.
func (c classCount) isLacking() bool { return c.complete == 0 && c.lacking > 0 }

// checkRules logs the event classes that lack a field of a rule. known is the number of classes that were checked
// before.
func (t *Trace) checkRules(c *ctf.Trace, known int) {
	if t.rules == nil {
		t.rules = make([]ruleUse, len(t.shared.Rules))
		for i := range t.rules {
			t.rules[i].missing = t.shared.Rules.Details(i)
		}
		t.scratch = make([]byte, 0, callevent.MaxNameBytes/16)
	}
	var fresh []*ctf.EventClass
	for _, stream := range c.StreamClasses() {
		for class := range stream.Events() {
			if class.Index >= known && t.shared.Rules.Has(class.Name) {
				fresh = append(fresh, class)
			}
		}
	}
	slices.SortFunc(fresh, func(a, b *ctf.EventClass) int { return cmp.Compare(a.Index, b.Index) })
	for _, class := range fresh {
		// The plan is made with the first event: hostile metadata may declare many events.
		parts := t.shared.Rules.Parts(class)
		for i := range parts {
			r := &parts[i]
			of := &t.rules[r.Rule]
			of.missing = slices.DeleteFunc(of.missing, func(d mapping.Detail) bool { return r.HasDetail(class, d) })
			use := &t.rules[r.Rule].entries
			if r.IsExit() {
				use = &t.rules[r.Rule].exits
			}
			if r.Lack == nil {
				use.complete++
				continue
			}
			use.lacking++
			t.shared.logRuleLacksField(r.Lack, r.IsExit())
		}
	}
	for i := range t.rules {
		if use := &t.rules[i]; use.entries != (classCount{}) && use.exits != (classCount{}) {
			for _, d := range use.missing {
				t.shared.warnNoDetail(i, d)
			}
		}
	}
}

// readRule packs an event that is one end of the calls of a rule. thread is the thread of the event in a kernel trace,
// or nil.
func (t *Trace) readRule(r *mapping.RulePart, p *mapping.Plan, e *ctf.Event, packet *ctf.Packet, nanos int64, process *Process, thread *kernelThread) {
	use := &t.rules[r.Rule]
	if r.Lack != nil || use.entries.isLacking() || use.exits.isLacking() {
		t.noKey++
		return
	}
	if r.UnlessRunning && t.kernel == nil || !r.Selects(t.scratch, e, packet) {
		return
	}
	if t.kernel != nil && r.Lane == mapping.LaneThread && !r.HasKey() && thread == nil {
		t.noThread++
		if !t.kernel.hasSwitches {
			t.shared.warnNoSwitches(p.Name)
		}
		return
	}
	if r.KeyIsThread && t.kernel != nil {
		t.readCPUCall(r, p, e, packet, nanos)
		return
	}
	if r.HasKey() && (r.Lane == mapping.LaneThread || r.UnlessRunning) && t.kernel != nil {
		tid, ok := r.Thread(e, packet)
		if !ok {
			t.noKey++
			t.shared.warnNoKey(p.Name)
			return
		}
		of := t.kernel.threadOf(tid, packet, p.CPU)
		if r.UnlessRunning && !t.kernel.isWaiting(of) {
			return
		}
		if !r.IsExit() && of.leavesLast(&p.Kernel, &e.Values) {
			// A thread that has left its last CPU does not wait for another.
			return
		}
		if r.Lane == mapping.LaneThread {
			thread, process = of, t.ownerOf(of, nanos)
		}
	}
	if t.kernel != nil && r.Lane != mapping.LaneThread {
		process = t.machine(nanos)
	}
	if !t.isReady(process, p.Name) {
		return
	}
	l := t.ruleLane(r, p, e, packet, process, thread)
	if l == nil {
		return
	}
	t.packRule(r, e, packet, nanos, process, l)
	if t.kernel != nil && r.Lane == mapping.LaneThread {
		t.kernel.noteCall(thread, r)
	}
}

// ruleLane returns the owner of the call stack of an event of a rule. It returns nil if the event does not have it.
func (t *Trace) ruleLane(r *mapping.RulePart, p *mapping.Plan, e *ctf.Event, packet *ctf.Packet, process *Process, thread *kernelThread) *lane {
	if r.Lane == mapping.LaneThread && t.kernel != nil {
		return process.lane(thread.laneID, []byte(thread.Name()))
	}
	key, ok := r.Key(t.scratch, e, packet)
	if !ok {
		t.noKey++
		t.shared.warnNoKey(p.Name)
		return nil
	}
	t.reuse(key.Text)
	switch r.Lane {
	case mapping.LaneCPU:
		cpu, _ := r.CPU(packet)
		return process.lane(r.CPULane(cpu, key), nil)
	case mapping.LaneKey:
		if t.kernel != nil {
			// The name of a lane is that of a thread.
			return process.lane(r.KeyLane(key), nil)
		}
		return process.lane(r.KeyLane(key), key.Text)
	}
	if r.HasKey() {
		tid, _ := r.Thread(e, packet)
		return process.lane(uint64(tid), nil)
	}
	return t.lane(p, &e.Values, process)
}

// packRule packs an event of a rule, and returns the function's name, which is valid until the next one. An exit without
// a function's name leaves the function that was entered last.
func (t *Trace) packRule(r *mapping.RulePart, e *ctf.Event, packet *ctf.Packet, nanos int64, process *Process, l *lane) []byte {
	kind := r.Kind
	var details *callstream.Details
	if r.HasDetails() {
		if t.texts == nil {
			t.texts = mapping.NewTexts()
		}
		details = &t.details
		details.Attributes = r.AppendAttributes(details.Attributes[:0], e, packet, t.texts)
		details.Failure = r.Failure(e)
	}
	name, ok := r.AppendFunction(t.scratch[:0], e, packet)
	if !ok {
		process.pack(callevent.KindExitTop, nanos, nil, l, details)
		return nil
	}
	t.reuse(name)
	if details != nil && details.Failure != "" {
		kind = callevent.KindFail
	}
	process.pack(kind, nanos, process.names.named(name), l, details)
	return name
}
