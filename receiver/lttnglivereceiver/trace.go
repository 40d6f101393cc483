// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// trace is a CTF trace of a session: the streams of a user's processes, or of one
// process. It outlives connections, and is for the goroutine of its session.
type trace struct {
	follower *follower
	env      *environment
	// key is the trace's UUID, or where it is found if it has none.
	key string
	// record is how far the trace had been handed on when it was met, or was dropped:
	// for streams and processes that are not there yet.
	record traceRecord

	// on is the connection that it was told on last.
	on *attachment

	// What follows reads it; nil after bad data, until the trace comes again.
	ctf    *ctf.Trace
	merger *merge.Merger
	// metadata is how many bytes of it were read, and digest their hash.
	metadata int
	digest   hash.Hash
	plans    []*plan
	// planned is how many bytes the plans take, about.
	planned int
	// streams are those that have not ended, by their keys; numbered by the ID that the
	// merger knows them by, of which some are free.
	streams  map[string]*stream
	numbered []*stream
	free     []uint64
	// held is how many bytes of packets the merger has.
	held int
	// ending is why the streams end.
	ending callevent.Cause
	// tellsObjects says that processes may tell their objects. A trace without such
	// events leaves nothing to wait for.
	tellsObjects bool
	// pid and program are those of a trace of one process.
	pid     int64
	hasPID  bool
	program string

	processes map[processKey]*process
	last      *process
	// nobody is where events are from that say of no process.
	nobody *origin

	// losses are how many intervals are open in which something is missing.
	losses    int
	lossCause callevent.Cause

	events    uint64
	published uint64
	late      int64
	noProcess int64
	noThread  int64
	noKey     int64
	// cutValues are arguments and return values that were too long.
	cutValues int64
	// key is space for keys and names.
	scratch []byte
	// bad are packets that can't be read, by their streams.
	bad      map[string][]packetTimes
	badCount int
	// reach is up to when packets have come.
	reach reach
	// floor is from when on the trace is read that is not read from its beginning, in
	// the clock's cycles; 0: not known yet.
	floor uint64
}

func newTrace(f *follower, key string) *trace {
	t := &trace{
		follower: f, env: f.env, key: key, record: f.env.positions.get(f.env.ctx, key),
		ending: callevent.CauseEnded, processes: map[processKey]*process{}, bad: map[string][]packetTimes{},
	}
	t.record.Streams = maps.Clone(t.record.Streams)
	if t.record.Streams == nil {
		t.record.Streams = map[string]merge.Position{}
	}
	for key := range t.record.Streams {
		f.ended.add(endedStream{t, key})
	}
	t.nobody = &origin{
		config: f.env.config, id: streamID(key, f.host, processKey{}, 0), host: f.host, session: f.session,
	}
	return t
}

// identify is what a trace of the session is known by; path is where the relay daemon has
// it, which is the same in other sessions.
func (f *follower) identify(t *ctf.Trace, path string) string {
	if m := t.Metadata(); m.HasUUID {
		return uuidText(m.UUID)
	}
	return fmt.Sprintf("%q/%q#%d/%q", f.host, f.session, f.id, path)
}

// begin begins to read the trace, with metadata that was read into c.
func (t *trace) begin(c *ctf.Trace, metadata []byte) {
	config := t.env.config
	t.ctf, t.merger = c, merge.New(c, merge.Options{
		MaxDelay: config.MaxDelay, MaxWaiting: config.Limits.MaxWaitingBytes, Stops: true, Resumes: t.resumes,
	})
	t.plans, t.streams, t.numbered, t.free = nil, map[string]*stream{}, nil, nil
	t.losses, t.reach, t.planned = 0, reach{}, 0
	t.digest = sha256.New()
	t.digest.Write(metadata)
	t.metadata = len(metadata)
	t.takeEnvironment()
	t.makePlans()
}

// appendMetadata takes more metadata of a trace that is read.
func (t *trace) appendMetadata(data []byte) error {
	t.digest.Write(data)
	t.metadata += len(data)
	if err := t.ctf.Append(data); err != nil {
		return err
	}
	t.takeEnvironment()
	t.makePlans()
	return nil
}

// continues reports whether metadata is that of the trace, or begins with it.
func (t *trace) continues(data []byte) bool {
	if t.ctf == nil || len(data) < t.metadata {
		return false
	}
	sum := sha256.Sum256(data[:t.metadata])
	return slices.Equal(sum[:], t.digest.Sum(nil))
}

// takeEnvironment takes the process of a trace with buffers for each process.
func (t *trace) takeEnvironment() {
	pid, err := strconv.ParseInt(t.ctf.Env("vpid"), 10, 64)
	if t.hasPID = err == nil; t.hasPID {
		t.pid, t.program = pid, t.ctf.Env("procname")
	}
}

// makePlans works out what to do with the event classes that are new.
func (t *trace) makePlans() {
	if len(t.plans) == t.ctf.EventClasses() {
		return
	}
	t.plans = append(t.plans, make([]*plan, t.ctf.EventClasses()-len(t.plans))...)
	for _, s := range t.ctf.Metadata().Events {
		if strings.HasPrefix(s.Name, providerStatedump+":") {
			t.tellsObjects = true
		}
	}
}

// plan is what to do with events of a class.
func (t *trace) plan(class *ctf.EventClass) *plan {
	p := t.plans[class.Index]
	if p == nil {
		recordBytes := 0
		if t.follower.logs != nil {
			recordBytes = t.env.config.Limits.MaxLogRecordBytes
		}
		p = newPlan(class, t.follower.rules, recordBytes)
		t.plans[class.Index] = p
		t.planned += bytesOfPlan
		if p.record != nil {
			t.planned += bytesOfColumn * len(p.record.columns)
		}
	}
	return p
}

// everyEvents is after how many events a long run looks at the time.
const everyEvents = 4096

// run hands on all events that are known to be next.
func (t *trace) run() error {
	if t.merger == nil {
		return nil
	}
	m := t.merger
	m.Advance(t.follower.clock())
	defer t.publish()
	for {
		switch m.Next() {
		case merge.Nothing:
			return m.Err()
		case merge.Event:
			t.event(m)
			if t.events%everyEvents == 0 || t.follower.noMemory != nil {
				if t.follower.noMemory != nil || t.follower.measure() != nil {
					return nil
				}
				t.follower.attend()
				if t.env.ctx.Err() != nil {
					return nil
				}
			}
		case merge.LossBegin:
			t.lossBegins(m.Loss)
		case merge.LossEnd:
			t.lossEnds(m.Loss)
		case merge.PacketEnd:
			t.numbered[m.Stream.ID].readPacket(m.Packet)
		case merge.StreamEnd:
			t.streamEnds(t.numbered[m.Stream.ID])
		}
	}
}

// event goes the two ways of an event.
func (t *trace) event(m *merge.Merger) {
	e := m.Event
	t.events++
	if m.Late {
		t.late++
	}
	p := t.plan(e.Class)
	process := t.processOf(p, e, m.Time)
	if process != nil && p.notice.kind != noticeNone {
		process.heed(&p.notice, &e.Values)
		process = t.last // what it says may show that it is another one
	}
	if p.record != nil {
		of := t.nobody
		if process != nil {
			of = &process.origin
		}
		t.follower.logs.add(p, e, m.Stream.Current(), m.Time, of)
	}
	if p.call.source != sourceNone && t.env.traces != nil {
		t.call(p, e, m.Time, process)
	}
}

// publish tells the counters what was read.
func (t *trace) publish() {
	n := int64(t.events - t.published)
	t.published = t.events
	t.follower.counts.events.Add(n)
	t.env.telemetry.read(n)
	t.env.telemetry.late(t.late)
	for _, dropped := range [...]struct {
		n      *int64
		reason string
	}{{&t.noProcess, droppedNoProcess}, {&t.noThread, droppedNoThread}, {&t.noKey, droppedNoKey}} {
		if *dropped.n > 0 {
			t.env.telemetry.callEventsDropped(*dropped.n, dropped.reason)
		}
		*dropped.n = 0
	}
	t.env.telemetry.callValuesCut(t.cutValues)
	t.late, t.cutValues = 0, 0
	if n > 0 {
		t.follower.counts.newest.Store(t.merger.Time)
	}
}

// attend does what time asks for.
func (t *trace) attend(now time.Time) {
	for _, p := range t.processes {
		p.attend(now)
	}
}

// flush hands on all that is packed.
func (t *trace) flush() {
	for _, p := range t.processes {
		p.flush()
	}
}
