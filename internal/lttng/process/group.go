// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"cmp"
	"iter"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Group contains the traces of one session or of one recording, and bounds the memory of their processes together: a
// session with buffers for each process has a trace for each process. One goroutine uses it, except for Processes.
type Group struct {
	shared shared
	traces map[*Trace]bool
	// abandoned are processes whose memory was freed and whose last batches are not delivered yet.
	abandoned []*Process
	// forgetting is set while all processes delete their names.
	forgetting bool
}

// Source is the origin of a group's traces: resource attributes of all processes.
type Source struct{ Host, Session string }

// NewGroup returns a group without traces. logs is nil if no pipeline accepts log records. grown is called with the
// growth of names and objects in bytes.
func NewGroup(settings *Settings, source Source, logger *zap.Logger, logs *Logs, grown func(bytes int)) *Group {
	g := &Group{
		shared: shared{
			Settings: settings, logger: logger, host: source.Host, session: source.Session, logs: logs, grown: grown,
			warned: map[string]bool{},
		},
		traces: map[*Trace]bool{},
	}
	g.shared.namesFull, g.shared.waitingFull, g.shared.processesFull = g.forgetNames, g.packMostWaiting, g.endSilent
	return g
}

// SetBatches sets the delivery of batches. It is set before the first event is read.
func (g *Group) SetBatches(b Batches) { g.shared.batches = b }

// NewTrace adds a trace with a key. resumed are its processes that an earlier reader followed, and threads those of the
// kernel that it knew.
func (g *Group) NewTrace(key string, resumed []Record, threads []ThreadRecord) *Trace {
	t := &Trace{
		shared: &g.shared, key: key, resumed: resumed, threads: threads, processes: map[Key]*Process{},
		unknown: &Origin{
			Settings: g.shared.Settings, ID: StreamID(key, g.shared.host, Key{}, 0), Host: g.shared.host, Session: g.shared.session,
		},
	}
	g.traces[t] = true
	return t
}

// Remove removes a trace that has ended.
func (g *Group) Remove(t *Trace) { delete(g.traces, t) }

// Processes returns the number of processes. Any goroutine may call it.
func (g *Group) Processes() int64 { return g.shared.processes.Load() }

// processes returns the processes of all traces.
func (g *Group) processes() iter.Seq[*Process] {
	return func(yield func(*Process) bool) {
		for t := range g.traces {
			for _, p := range t.processes {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// endSilent ends the process with the oldest last event.
func (g *Group) endSilent() {
	var silent *Process
	var of *Trace
	for t := range g.traces {
		for _, p := range t.processes {
			if silent == nil || cmp.Or(cmp.Compare(p.seen, silent.seen), bytes.Compare(p.ID[:], silent.ID[:])) < 0 {
				silent, of = p, t
			}
		}
	}
	silent.end(callevent.CauseLimit)
	of.remove(silent)
}

// packMostWaiting packs the waiting calls of the process that has most of them.
func (g *Group) packMostWaiting() {
	var most *Process
	for p := range g.processes() {
		if most == nil || len(p.waiting) > len(most.waiting) {
			most = p
		}
	}
	most.packWaiting()
}

// forgetNames deletes the names of all processes. It packs waiting calls, because they refer to names.
func (g *Group) forgetNames() {
	forgotten := 0
	for p := range g.processes() {
		forgotten += p.names.len()
		p.names.clear()
	}
	g.shared.Telemetry.NamesForgotten(int64(forgotten))
	g.shared.logNamesForgotten(forgotten)
	if g.forgetting {
		return // packing calls added names again
	}
	g.forgetting = true
	for p := range g.processes() {
		p.packWaiting()
	}
	g.forgetting = false
}

// DeliverDue delivers log records and call events that are old enough.
func (g *Group) DeliverDue(now time.Time) {
	for p := range g.processes() {
		p.deliverDue(now)
	}
	g.shared.logs.DeliverDue(now)
}

// Flush delivers everything that is packed.
func (g *Group) Flush() {
	for t := range g.traces {
		t.Flush()
	}
	g.FlushLogs()
}

// FlushLogs delivers the log records.
func (g *Group) FlushLogs() { g.shared.logs.Flush() }

// The approximate sizes in memory, in bytes, of a process without its parts, and of a waiting call.
const (
	processBytes = 2 << 10
	waitingBytes = 56
)

// HeldByEvents returns the approximate size of data from events in the group: names, objects, log records and waiting
// calls.
func (g *Group) HeldByEvents() int {
	return g.shared.names + g.shared.objects + waitingBytes*g.shared.waiting + g.shared.logs.Bytes()
}

// Held returns the approximate size of the rest: plans and batches.
func (g *Group) Held() (bytes int) {
	for t := range g.traces {
		bytes += t.planBytes + 8*cap(t.plans) + t.kernel.held()
	}
	for p := range g.processes() {
		bytes += processBytes + p.calls.Held()
	}
	for _, p := range g.abandoned {
		bytes += processBytes + p.calls.Held()
	}
	return bytes
}

// Abandon frees the memory of all processes except their current batches. DeliverAbandoned delivers
// these. No process is resumed.
func (g *Group) Abandon() {
	for t := range g.traces {
		for _, p := range t.processes {
			p.freeMemory()
			g.abandoned = append(g.abandoned, p)
		}
		t.forgetProcesses()
		t.resumed = nil
	}
}

// HasAbandoned reports whether there are batches from Abandon to deliver.
func (g *Group) HasAbandoned() bool { return g.abandoned != nil }

// DeliverAbandoned delivers the batches from Abandon, with the ends of their call streams.
func (g *Group) DeliverAbandoned() {
	for i, p := range g.abandoned {
		p.end(callevent.CauseLimit)
		g.abandoned[i] = nil
	}
	g.abandoned = nil
}
