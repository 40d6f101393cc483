// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/position"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

// recording is the result of reading a session, and outlives its connections: its traces, their processes, and their
// positions. The session's goroutine uses it.
type recording struct {
	env     *Environment
	subject Subject
	lines   *lines
	memory  memory
	counts  counts
	// health is the session's part of the component's status.
	health *serverhealth.Part

	id            uint64
	host, session string
	// perProcess is set if the session has buffers for each process.
	perProcess bool

	group *process.Group
	// traces are those that are read, or were read when the connection was lost. forgotten is set if there were
	// others, which have ended.
	traces    map[string]*trace
	forgotten bool
	buffers   buffers
	ended     *endedStreams
	// announced is the size of the streams and the metadata that the connection announced.
	announced int

	// attachedAt is when the session was attached last, and saved when positions were stored last.
	attachedAt, saved time.Time
	// held is the time since began that does not count for max_delay, because the session was not
	// read. stopped is when it was read last.
	held           time.Duration
	began, stopped time.Time
}

// badData is an error in the data of a relay daemon.
type badData struct {
	what string
	err  error
}

// BadData returns the error of unreadable data of a kind, for a Connection.
func BadData(what string, err error) error { return &badData{what, err} }

func (e *badData) Error() string { return e.what + ": " + e.err.Error() }
func (e *badData) Unwrap() error { return e.err }

// saveInterval is how often positions are stored. If the collector is killed, later events are read
// again.
const saveInterval = 5 * time.Second

// sessionBytes is the approximate size in memory of an empty session: connection, goroutine, texts.
const sessionBytes = 256 << 10

func newRecording(env *Environment, s Subject, l *lines) *recording {
	now := env.Now()
	r := &recording{
		env: env, subject: s, lines: l, health: env.Health.Part(s.Kind + " " + s.Name), id: s.ID, host: s.Host, session: s.Session.Name,
		traces: map[string]*trace{}, buffers: newBuffers(&env.Settings.Limits),
		ended: newEndedStreams(env.Settings.Limits.Streams), saved: now, began: now, stopped: now,
	}
	r.memory = memory{env: env, counted: func() int { return r.buffers.held + r.buffers.bytes + r.group.HeldByEvents() }}
	r.group = process.NewGroup(env.Process, process.Source{Host: r.host, Session: r.session}, l.logger, r.newLogs(), r.memory.grow)
	return r
}

// newLogs returns the log records of the session, or nil if no pipeline accepts log records.
func (r *recording) newLogs() *process.Logs {
	if r.env.Logs == nil {
		return nil
	}
	settings := *r.env.Logs
	settings.Deliver = func(logs plog.Logs, records, bytes, leftOut int) {
		r.env.DeliverLogs(logs, records, bytes)
		r.env.Telemetry.LogValuesLeftOut(int64(leftOut))
	}
	return process.NewLogs(settings)
}

// openMemory opens the memory account of the session, and its delivery of batches.
func (r *recording) openMemory() {
	r.memory.open()
	r.group.SetBatches(r.env.NewBatches(r.memory.delivering, r.lines.logger))
}

// key returns the key of a trace of the session. The relay daemon has the trace at path, which may be equal in other
// sessions.
func (r *recording) key(t *ctf.Trace, path string) string {
	if r.subject.Key != "" {
		return r.subject.Key
	}
	if m := t.Metadata(); m.HasUUID {
		return process.UUIDText(m.UUID)
	}
	return fmt.Sprintf("%q/%q#%d/%q", r.host, r.session, r.id, path)
}

// newTrace adds a trace. It continues at its stored position.
func (r *recording) newTrace(key string) *trace {
	at := r.env.Positions.Get(r.env.Delivering, r.positionKey(key))
	if len(at.Streams) > 0 && at.Recording != r.subject.Recording {
		r.lines.warnOtherRecording(zap.String("trace", key))
		at = position.Trace{}
	}
	t := &trace{
		env: r.env, lines: r.lines, memory: &r.memory, counts: &r.counts, buffers: &r.buffers, ended: r.ended, key: key, damaged: r.subject.Damaged,
		processes: r.group.NewTrace(key, at.Processes, at.Threads), ending: callevent.CauseEnded, bad: map[string][]packetTimes{},
	}
	t.position.Streams = maps.Clone(at.Streams)
	if t.position.Streams == nil {
		t.position.Streams = map[string]merge.Position{}
	}
	for key := range t.position.Streams {
		r.ended.append(endedStream{&t.position, key})
	}
	r.traces[key] = t
	return t
}

// forgetPosition forgets how far a trace was read, with its processes and threads: those of another recording. No stream
// of the trace was read.
func (r *recording) forgetPosition(t *trace) {
	clear(t.position.Streams)
	r.ended.forgetTrace(&t.position)
	r.group.Remove(t.processes)
	t.processes = r.group.NewTrace(t.key, nil, nil)
	t.processes.Begin(t.ctf)
}

// positionKey returns the key of the position of a trace.
func (r *recording) positionKey(trace string) string { return cmp.Or(r.subject.Position, trace) }

// hasRead reports whether packets of the session were read, so that it continues from there.
func (r *recording) hasRead() bool {
	for _, t := range r.traces {
		if t.floor > 0 || len(t.position.Streams) > 0 {
			return true
		}
	}
	return r.forgotten
}

// clock is the time for max_delay. It stands while the session is not read.
func (r *recording) clock() time.Duration { return r.env.Now().Sub(r.began) - r.held }

// withoutClock does something that may wait for a pipeline. No stream can send anything meanwhile, so
// the time does not count for max_delay.
func (r *recording) withoutClock(do func()) {
	begin := r.env.Now()
	do()
	r.held += r.env.Now().Sub(begin)
}

// read reads all events that are next in order of time, and delivers due data.
func (r *recording) read() (err error) {
	r.withoutClock(func() {
		for _, t := range r.traces {
			if err = t.read(r.clock(), r.check); err != nil {
				err = &badData{what: BadPacket, err: fmt.Errorf("trace %s: %w", t.key, err)}
				break
			}
		}
		r.deliverDue()
	})
	return err
}

// check delivers due data during a long run, and reports whether the run may continue.
func (r *recording) check() bool {
	if r.memory.why != nil || r.measure() != nil {
		return false
	}
	r.deliverDue()
	return r.env.Delivering.Err() == nil
}

// deliverDue delivers and stores due data.
func (r *recording) deliverDue() {
	now := r.env.Now()
	r.group.DeliverDue(now)
	if now.Sub(r.attachedAt) >= r.env.Settings.Reconnect.MaxInterval {
		r.health.Up()
	}
	if now.Sub(r.saved) >= saveInterval {
		r.save()
	}
}

// save stores the positions of all traces, if there is a storage.
func (r *recording) save() {
	if r.env.Settings.Stored {
		r.group.Flush()
		r.savePositions()
	}
}

func (r *recording) savePositions() {
	r.saved = r.env.Now()
	for _, t := range r.traces {
		if t.merger != nil || len(t.position.Streams) > 0 {
			r.savePosition(t)
		}
	}
}

func (r *recording) savePosition(t *trace) {
	// The position is also stored after the time of a shutdown.
	r.env.Positions.Set(context.WithoutCancel(r.env.Delivering), r.positionKey(t.key), t.currentPosition(r.subject.Recording))
}

// measure measures the memory of the session that is not counted, and charges all of it.
func (r *recording) measure() error {
	bytes := sessionBytes + r.announced + r.ended.size() + r.group.Held()
	for _, t := range r.traces {
		bytes += t.size()
	}
	r.memory.measured = bytes
	return r.memory.charge(0)
}

// forget removes a trace that has ended. Its position stays stored, because another connection may
// announce the trace again.
func (r *recording) forget(t *trace) {
	r.withoutClock(func() {
		r.group.FlushLogs()
		t.processes.End(callevent.CauseDisconnected)
		r.savePosition(t)
	})
	r.removeTrace(t)
	r.forgotten = true
}

func (r *recording) removeTrace(t *trace) {
	delete(r.traces, t.key)
	r.group.Remove(t.processes)
	r.ended.forgetTrace(&t.position)
}

// abandon frees the memory of the session and stores its positions. The current batches stay, for
// deliverAbandoned.
func (r *recording) abandon() {
	r.forgotten = r.hasRead()
	r.group.Abandon()
	for _, t := range r.traces {
		r.savePosition(t) // drop forgets the threads of the kernel
		t.drop(callevent.CauseLimit)
		r.removeTrace(t)
	}
	r.buffers.clear()
	r.announced = 0
	r.memory.shrinkTo(sessionBytes + r.group.Held())
}

// finish delivers the rest of a session that is no longer read.
func (r *recording) finish(cause callevent.Cause) {
	r.group.DeliverAbandoned()
	for _, t := range r.traces {
		// The next collector reads on from stored positions. Without a storage, events that wait for
		// other streams are delivered now.
		if !r.env.Settings.Stored || cause != callevent.CauseShutdown {
			t.ending = cause
			t.endStreams()
			if err := t.read(r.clock(), r.check); err != nil {
				r.lines.logLastEvents(err)
			}
		}
		t.processes.End(cause)
	}
	r.group.FlushLogs()
	r.savePositions()
	for _, t := range r.traces {
		t.drop(cause)
	}
}
