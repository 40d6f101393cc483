// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/sha256"
	"hash"
	"maps"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/position"
	"github.com/callbraid/callbraid/internal/lttng/process"
)

// trace is a CTF trace of a session: the streams of a user's processes, or of one process. It outlives connections.
// The session's goroutine uses it.
type trace struct {
	env     *Environment
	lines   *lines
	memory  *memory
	counts  *counts
	buffers *buffers
	ended   *endedStreams
	// damaged is that of the subject.
	damaged func(stream string, offset uint64, err error)
	// key is the trace's UUID; without a UUID, session and path.
	key string
	// position is how far the trace was read when it was first announced, or was dropped: for streams
	// that are not announced yet. Its Processes are unused: processes has them.
	position position.Trace
	// processes makes log records and call events from the events.
	processes *process.Trace

	// ctf and merger read the trace. They are nil after bad data, until the trace is announced again.
	ctf    *ctf.Trace
	merger *merge.Merger
	// metadata is the number of bytes of metadata, and digest their hash.
	metadata int
	digest   hash.Hash
	// streams have not ended. They are indexed by key. numbered indexes them by the IDs for the merger. Some of these
	// IDs are free.
	streams  map[string]*stream
	numbered []*stream
	free     []uint64
	// held is the size of the packets that the merger has.
	held int
	// ending is the cause of the end of the streams.
	ending callevent.Cause

	events, published uint64
	late              int64
	// bad are packets that cannot be read, by stream.
	bad      map[string][]packetTimes
	badCount int
	// reached is the end of the latest packet in the clock of a stream class, in cycles.
	reached struct{ class, end uint64 }
	// floor is the time from which the trace is read, if it is not read from its beginning, in the clock's cycles. It
	// is 0 while it is not known.
	floor uint64
}

// stream is a stream of packets of a trace. It outlives connections, and has another ID on each.
type stream struct {
	// key is its path and channel.
	key   string
	trace *trace
	in    *merge.Stream

	// The fields up to undeclared belong to the current connection. present is set if that announced the stream,
	// hungUp if the stream is no longer requested.
	id              uint64
	present, hungUp bool
	// current is set if the stream had no data once. Then everything that was recorded before the connection has
	// arrived.
	current bool
	// pending is the index of a packet that was not received yet.
	pending    lttnglive.Index
	hasPending bool
	// undeclared is the time since which the metadata lacks the class of the pending packet, or zero.
	undeclared time.Time

	// offset is the offset of the last packet. any is set if there was a packet, full if the last one had no room for
	// another event.
	offset uint64
	any    bool
	full   bool
	// waiting are the packets that the merger has.
	waiting []waitingPacket
	// bad are unreadable packets, which are skipped.
	bad []packetTimes
}

// waitingPacket is a packet that the merger has.
type waitingPacket struct {
	packetTimes
	bytes int
	// rewound is set if its offset is before that of the packet written before it.
	rewound bool
}

// packetTimes are the times of a packet's begin and end. They identify it on other connections.
type packetTimes struct{ begin, end uint64 }

func timesOf(i *lttnglive.Index) packetTimes { return packetTimes{i.TimestampBegin, i.TimestampEnd} }

const (
	// maxBad bounds the skipped bad packets of a trace. Each further one ends an attempt to read the session.
	maxBad = 1000
	// fullBits is the room in a packet, in bits, that is too small for an event.
	fullBits = 256 * 8
	// checkInterval is the number of events after which a long run checks the time.
	checkInterval = 4096
)

// streamKey returns the key of a stream on all connections.
func streamKey(s lttnglive.Stream) string { return s.Path + "/" + s.Channel }

// begin begins to read the trace. c was made from its metadata.
func (t *trace) begin(c *ctf.Trace, metadata []byte) {
	options := merge.Options{
		MaxDelay: t.env.Settings.MaxDelay, MaxWaiting: t.env.Settings.Limits.WaitingBytes, Stops: true,
	}
	if !process.IsOfKernel(c) {
		options.Resumes = func(e *ctf.Event) bool { return t.processes.Resumes(e) }
	}
	if t.damaged != nil {
		options.Damaged = func(s *merge.Stream, at *merge.Index, err error) { t.damaged(s.Name, at.Offset, err) }
	}
	t.ctf, t.merger = c, merge.New(c, options)
	t.streams, t.numbered, t.free = map[string]*stream{}, nil, nil
	t.reached.class, t.reached.end = 0, 0
	t.digest = sha256.New()
	t.digest.Write(metadata)
	t.metadata = len(metadata)
	t.processes.Begin(c)
}

// appendMetadata reads more metadata.
func (t *trace) appendMetadata(data []byte) error {
	t.digest.Write(data)
	t.metadata += len(data)
	if err := t.ctf.Append(data); err != nil {
		return err
	}
	t.processes.ReadMetadata(t.ctf)
	return nil
}

// continues reports whether data is the metadata of the trace, or begins with it.
func (t *trace) continues(data []byte) bool {
	if t.ctf == nil || len(data) < t.metadata {
		return false
	}
	sum := sha256.Sum256(data[:t.metadata])
	return slices.Equal(sum[:], t.digest.Sum(nil))
}

// openStream returns the stream that a connection announced.
func (t *trace) openStream(announced lttnglive.Stream) *stream {
	key := streamKey(announced)
	s := t.streams[key]
	if s == nil {
		s = t.newStream(key)
	} else {
		s.in.Replay()
	}
	s.id, s.present, s.hungUp, s.hasPending, s.current = announced.ID, true, false, false, false
	s.undeclared = time.Time{}
	return s
}

func (t *trace) newStream(key string) *stream {
	number := uint64(len(t.numbered))
	if last := len(t.free) - 1; last >= 0 {
		number, t.free = t.free[last], t.free[:last]
	} else {
		t.numbered = append(t.numbered, nil)
	}
	s := &stream{key: key, trace: t, in: t.merger.AddStream(number, key), bad: t.bad[key]}
	s.in.Resume(t.position.Streams[key])
	t.streams[key], t.numbered[number] = s, s
	t.countStreams(1)
	return s
}

func (t *trace) countStreams(change int) {
	t.counts.streams.Add(int64(change))
	t.env.Telemetry.Streams(int64(change))
}

// appendPacket hands a packet to the merger.
func (s *stream) appendPacket(data []byte, i *lttnglive.Index) {
	s.trace.hold(cap(data))
	s.waiting = append(s.waiting, waitingPacket{timesOf(i), cap(data), s.any && i.Offset <= s.offset})
	s.offset, s.any = i.Offset, true
	s.full = i.PacketSize >= i.ContentSize && i.PacketSize-i.ContentSize < fullBits
	s.in.Packet(data, &merge.Index{
		StreamClass: i.StreamClass, Begin: i.TimestampBegin, End: i.TimestampEnd,
		Discarded: i.EventsDiscarded, Content: i.ContentSize, Offset: i.Offset, Placed: s.trace.damaged != nil,
	})
}

// isCut reports whether an ended stream certainly lacks its last packet. When a process ends, the tracer closes a
// packet of each of its streams, even an empty one. A full packet was closed because an event had to be written to
// the next packet.
func (s *stream) isCut() bool { return !s.any || s.full }

// process returns the name and the ID of the process of a trace with buffers for each process.
func (t *trace) process() string { return t.ctf.Env("procname") + " " + t.ctf.Env("vpid") }

// isRewound reports whether the current packet lies before the packet that was written before it: the
// file was emptied or is overwritten.
func (s *stream) isRewound() bool { return len(s.waiting) > 0 && s.waiting[0].rewound }

// hold counts bytes of packets that wait.
func (t *trace) hold(bytes int) {
	t.held += bytes
	t.buffers.held += bytes
	if t.env.Held != nil {
		t.env.Held(t.buffers.held, t.buffers.bytes)
	}
}

// reach notes the end of a packet that arrived.
func (t *trace) reach(i *lttnglive.Index) {
	if i.TimestampEnd > t.reached.end {
		t.reached.class, t.reached.end = i.StreamClass, i.TimestampEnd
	}
}

// read reads all events that are next in order of time. now is the time for max_delay. During a long
// run it calls check from time to time, and stops when that returns false.
func (t *trace) read(now time.Duration, check func() bool) error {
	if t.merger == nil {
		return nil
	}
	m := t.merger
	m.Advance(now)
	defer t.publish()
	for {
		switch m.Next() {
		case merge.Nothing:
			return m.Err()
		case merge.Event:
			t.events++
			if m.Late {
				t.late++
			}
			t.processes.ReadEvent(m.Event, m.Stream.Current(), m.Time)
			if (t.events%checkInterval == 0 || t.memory.why != nil) && !check() {
				return nil
			}
		case merge.LossBegin:
			t.beginLoss(m.Loss)
		case merge.LossEnd:
			t.endLoss(m.Loss)
		case merge.PacketEnd:
			t.endPacket(t.numbered[m.Stream.ID], m.Packet)
		case merge.StreamEnd:
			t.endStream(t.numbered[m.Stream.ID])
		}
	}
}

func (t *trace) beginLoss(l *merge.Loss) {
	t.processes.BeginLoss(l.Cause)
	s := t.numbered[l.Stream.ID]
	switch l.Cause {
	case merge.LostPackets:
		t.counts.packetsLost.Add(int64(l.Count))
		t.env.Telemetry.PacketsLost(int64(l.Count))
		if s.isRewound() {
			t.env.Telemetry.Cleared()
			t.lines.logCleared(t.key, s.key, l.Count)
		}
	case merge.Overtaken:
		t.lines.warnOvertaken(s.key, t.env.Settings.MaxDelay)
	case merge.NoRoom:
		t.lines.warnNoRoom(s.key, t.env.Settings.Limits.WaitingBytes)
	}
}

func (t *trace) endLoss(l *merge.Loss) {
	if l.Cause == merge.Discarded {
		t.counts.discarded.Add(int64(l.Count))
		t.env.Telemetry.EventsDiscarded(int64(l.Count))
	}
	t.processes.EndLoss()
}

// endPacket releases a packet that was read.
func (t *trace) endPacket(s *stream, data []byte) {
	t.hold(-s.waiting[0].bytes)
	s.waiting = s.waiting[1:]
	t.buffers.release(data)
}

// endStream removes an ended stream after all of it was read. Without streams the processes end.
func (t *trace) endStream(s *stream) {
	t.rememberPosition(s)
	delete(t.streams, s.key)
	t.numbered[s.in.ID] = nil
	t.free = append(t.free, s.in.ID)
	t.countStreams(-1)
	if len(t.streams) == 0 {
		t.processes.End(t.ending)
	}
}

// publish reports the events of a run to the metrics.
func (t *trace) publish() {
	n := int64(t.events - t.published)
	t.published = t.events
	t.counts.events.Add(n)
	t.env.Telemetry.EventsRead(n)
	t.env.Telemetry.EventsLate(t.late)
	t.late = 0
	t.processes.Publish()
	if n > 0 {
		t.counts.newest.Store(t.merger.Time)
	}
}

// endStreams ends all streams, so that no stream waits for another.
func (t *trace) endStreams() {
	for _, s := range t.streams {
		s.in.End()
	}
}

// drop stops reading the trace until it is announced again. Positions stay known.
func (t *trace) drop(cause callevent.Cause) {
	if t.merger == nil {
		return
	}
	continues := t.continuesExactly()
	for _, s := range t.streams {
		t.rememberPosition(s)
	}
	if failed := t.merger.Failed(); failed != nil {
		t.leaveOut(t.numbered[failed.ID])
	}
	t.processes.Break(cause, continues)
	t.countStreams(-len(t.streams))
	t.hold(-t.held)
	t.metadata = 0
	t.ctf, t.merger, t.streams, t.numbered, t.free = nil, nil, nil, nil, nil
}

// continuesExactly reports whether the next reader of the trace reads no event twice, and leaves none out.
func (t *trace) continuesExactly() bool {
	for _, s := range t.streams {
		if !s.in.Continues() {
			return false
		}
	}
	return true
}

// leaveOut records an unreadable packet of a stream. The next attempt skips it, because it would end there again.
func (t *trace) leaveOut(s *stream) {
	if len(s.waiting) > 0 && t.badCount < maxBad {
		t.badCount++
		t.bad[s.key] = append(t.bad[s.key], s.waiting[0].packetTimes)
		t.lines.warnLeftOut(s.key, s.waiting[0].begin, s.waiting[0].end)
	}
}

// rememberPosition remembers the position of a stream that is no longer read.
func (t *trace) rememberPosition(s *stream) {
	if at := s.in.Position(); at.Known {
		t.position.Streams[s.key] = at
		t.ended.append(endedStream{&t.position, s.key})
	}
}

// positionOf returns the position of a stream.
func (t *trace) positionOf(key string) merge.Position {
	if s := t.streams[key]; s != nil {
		return s.in.Position()
	}
	return t.position.Streams[key]
}

// currentPosition returns how far the trace of a recording was read.
func (t *trace) currentPosition(recording string) *position.Trace {
	p := &position.Trace{Recording: recording, Streams: maps.Clone(t.position.Streams), Processes: t.processes.Records()}
	if t.continuesExactly() {
		// Otherwise the next reader begins before these threads were known.
		p.Threads = t.processes.Threads()
	}
	for key, s := range t.streams {
		if at := s.in.Position(); at.Known {
			p.Streams[key] = at
		}
	}
	return p
}

// The approximate sizes in memory, in bytes, of a trace, a stream and a waiting packet without their
// parts.
const (
	traceBytes  = 16 << 10
	streamBytes = 1 << 10
	packetBytes = 200
)

// size returns the approximate size of the trace in memory, without processes and waiting packets.
func (t *trace) size() int {
	bytes := traceBytes
	if t.ctf != nil {
		bytes += t.ctf.Size()
	}
	for _, s := range t.streams {
		bytes += streamBytes + 2*len(s.key) + packetBytes*cap(s.waiting) + s.in.Held()
	}
	return bytes
}
