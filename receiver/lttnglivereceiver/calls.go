// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

const (
	// sameStart is how far apart the first events of a process and the beginning of
	// its state, or two such beginnings, may be: a program runs while it tells its
	// state, and tells it once for each channel.
	sameStart = int64(time.Second)
	// threadSuffix is what LTTng-UST adds to the name of a program for its own threads.
	threadSuffix = "-ust"
)

// processOf is the process that an event is of; nil: it doesn't say.
func (t *trace) processOf(p *plan, e *ctf.Event, nanos int64) *process {
	key, ok := t.keyOf(p, e)
	if !ok {
		return nil
	}
	process := t.last
	if process == nil || process.key != key {
		if process = t.processes[key]; process == nil {
			process = t.meet(key, p, e, nanos)
		}
		t.last = process
	}
	process.seen = nanos
	if p.notice.kind == noticeStart {
		return t.starts(process, p, e, nanos)
	}
	return process
}

// keyOf says of which process an event is, if it does.
func (t *trace) keyOf(p *plan, e *ctf.Event) (key processKey, ok bool) {
	if key.pid, ok = p.vpid.get(&e.Values); !ok {
		if !t.hasPID {
			return key, false
		}
		key.pid = t.pid
	}
	key.namespace, _ = p.namespace.get(&e.Values)
	return key, true
}

// meet makes a process that was not there.
func (t *trace) meet(key processKey, p *plan, e *ctf.Event, nanos int64) *process {
	if t.follower.followed >= t.env.config.Limits.MaxProcesses {
		t.follower.forgetOne()
	}
	process, known := t.recall(key)
	if !known {
		process = newProcess(t, key, nanos)
		process.program = cmp.Or(t.program, p.runtime)
		if process.program == "" {
			// The thread's name, which threads have of their process if they are not called
			// otherwise, as those of Java and Python are.
			process.program = strings.TrimSuffix(callevent.Name(p.procname.get(&e.Values)), threadSuffix)
		}
	}
	if t.losses > 0 {
		process.breaks.begin(process.next, t.lossCause)
	}
	t.processes[key] = process
	t.follower.follow(1)
	return process
}

// recall makes a process that was known when the trace was read before.
func (t *trace) recall(key processKey) (process *process, known bool) {
	for i, r := range t.record.Processes {
		if (processKey{r.Namespace, r.PID}) != key {
			continue
		}
		t.record.Processes = slices.Delete(slices.Clone(t.record.Processes), i, i+1)
		process = newProcess(t, key, r.Begun)
		process.next, process.program = r.Next, r.Program
		process.started, process.startedAt = len(r.Objects) > 0, r.Begun
		process.recall(r.Objects)
		if r.Next > 0 {
			process.breaks.add(callevent.Point(r.Next, callevent.CauseDisconnected))
		}
		return process, true
	}
	return nil, false
}

// starts is called when a process begins to tell its state. One that has told it before
// tells it again where tracing was stopped for a while, or it has ended and its ID was
// used again: what it tells will show.
func (t *trace) starts(old *process, p *plan, e *ctf.Event, nanos int64) *process {
	before := old.begun
	if old.started {
		before = old.startedAt
	}
	if nanos-before <= sameStart && !old.addresses.listed {
		old.started, old.startedAt = true, nanos
		return old
	}
	if old.retells(nanos) {
		return old
	}
	old.end(callevent.CauseEnded)
	old.forget()
	process := t.meet(old.key, p, e, nanos)
	process.started, process.startedAt, process.seen = true, nanos, nanos
	t.last = process
	return process
}

// call packs an event that is a call event.
func (t *trace) call(p *plan, e *ctf.Event, nanos int64, process *process) {
	c, v := &p.call, &e.Values
	kind := c.kind
	var rest []byte
	if c.source == sourceRecord {
		if level, ok := c.level.get(v); !ok || level != julFiner {
			return
		}
		if kind, rest = callRecord(c.message.get(v)); kind == 0 {
			return
		}
	}
	if process == nil {
		t.noProcess++
		t.follower.warnNoProcess(p.name)
		return
	}
	if process.packer == nil {
		if err := process.openPacker(); err != nil {
			t.noProcess++
			t.follower.cannotPack(err)
			return
		}
		if !t.tellsObjects {
			t.follower.noteNoState()
		}
	}
	l := t.lane(p, v, process)
	if l == nil {
		return
	}
	switch c.source {
	case sourceAddress:
		process.address(kind, nanos, v.Uint(c.address), l)
	case sourceTop:
		process.pack(kind, process.number(), nanos, nil, l, nil)
	case sourceRecord:
		t.callOfRecord(kind, nanos, process, process.method(c.class.get(v), c.method.get(v)), l, rest)
	case sourceRule:
		t.rule(p, v, nanos, process, l)
	}
}

// callOfRecord packs a call that a log record tells of, with the arguments or the return value
// that it has in its rest. These are cut to what batches take.
func (t *trace) callOfRecord(kind callevent.Kind, nanos int64, process *process, f *function, l *lane, rest []byte) {
	var with *annotation
	if len(rest) > 0 {
		with = &annotation{key: attributeArguments, value: callevent.StringValue(callevent.Name(rest))}
		if kind == callevent.KindExit {
			with.key = attributeReturnValue
		}
		if len(rest) > callevent.MaxNameBytes {
			t.cutValues++
		}
	}
	process.pack(kind, process.number(), nanos, f, l, with)
}

// lane is what has the call stack that an event belongs to: its thread, or the key of
// a rule; nil: the event doesn't say.
func (t *trace) lane(p *plan, v *ctf.Values, process *process) *lane {
	c := &p.call
	if c.source == sourceRule && c.rule.rule.KeyField != "" {
		if c.key == nil || !v.Present(c.key) {
			t.noKey++
			t.follower.warnNoKey(p.name, c.rule.rule.KeyField)
			return nil
		}
		key := t.keep(appendScalar(t.scratch[:0], v, c.key))
		return process.laneOf(keyLane(c.rule.index, key), key)
	}
	if id, ok := c.thread.get(v); ok {
		return process.laneOf(uint64(id)|callevent.LaneManaged, p.procname.get(v))
	}
	id, ok := p.vtid.get(v)
	if !ok {
		t.noThread++
		t.follower.warnNoThread(p.name)
		return nil
	}
	return process.laneOf(uint64(id), p.procname.get(v))
}

// keyLane is the lane of a key of a rule.
func keyLane(rule int, key []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(rule), byte(rule >> 8)})
	_, _ = h.Write(key)
	return h.Sum64() | callevent.LaneKey
}

// rule packs an event of a rule. An exit that doesn't say of what leaves whatever was
// entered last.
func (t *trace) rule(p *plan, v *ctf.Values, nanos int64, process *process, l *lane) {
	c := &p.call
	rule := c.rule.rule
	name := t.scratch[:0]
	switch {
	case rule.Name != "":
		name = append(name, rule.Name...)
	case c.name != nil && v.Present(c.name):
		name = appendScalar(name, v, c.name)
	case c.kind == callevent.KindExit:
		process.pack(callevent.KindExitTop, process.number(), nanos, nil, l, nil)
		return
	}
	if len(name) == 0 {
		name = append(name, rule.Entry...)
	}
	process.pack(c.kind, process.number(), nanos, process.named(t.keep(name)), l, nil)
}

// keep keeps the space of a text for the next one, unless it is large, and gives the text.
func (t *trace) keep(text []byte) []byte {
	if cap(text) <= 2*callevent.MaxNameBytes {
		t.scratch = text
	}
	return text
}
