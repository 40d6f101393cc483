// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// Options are how a Merger merges. The zero value is the defaults.
type Options struct {
	// MaxDelay is how long a stream that says nothing may hold the others; 0: for
	// ever, as it should be where everything is there already.
	MaxDelay time.Duration
	// MaxWaiting is from how many bytes of packets on a stream that has something to
	// read is given no more; default 64 MiB.
	MaxWaiting int
	// Stops says that whoever wrote the trace writes an empty packet where tracing is
	// stopped: a loss of cause Stopped stands at its end, if anything follows.
	Stops bool
	// Resumes says of an event that its process says that it is traced again: a loss of
	// cause Stopped ends with it. nil: there are no such events. It must not keep the
	// event.
	Resumes func(*ctf.Event) bool
}

const defaultMaxWaiting = 64 << 20

// Merger merges the streams of a trace. One goroutine at a time may use it, its
// streams, and the trace.
type Merger struct {
	// What Next has returned. It holds until the next call.

	// Stream is the one that it is of.
	Stream *Stream
	// Time is when it happened, in nanoseconds since the Unix epoch. It doesn't go
	// back but for what is Late. Events of a stream without clock have the time of what
	// was given out before them.
	Time int64
	// Event holds for the kind Event.
	Event *ctf.Event
	// Late says that something comes after what is newer.
	Late bool
	// Loss holds for LossBegin and LossEnd.
	Loss *Loss
	// Packet holds for PacketEnd: the bytes that Stream.Packet was given.
	Packet []byte

	trace   *ctf.Trace
	options Options
	now     time.Duration
	// streams are by number; nil once all of one was given out, which ended counts.
	streams []*Stream
	ended   int
	waiting int
	err     error
	// failed is the stream that err is of.
	failed *Stream

	// passed is the time of the newest thing that was given out.
	passed int64
	order  heap
	// out is what is given out next, whatever the order of time.
	out []output
	// last is the stream whose head was given out last; used says that it has to find
	// another one.
	last *Stream
	used bool
	// running says that last may go on as long as its events are older than bound: the
	// first thing of the other streams.
	running bool
	bound   key
	// unresolved are streams whose promises nobody understands before more metadata
	// comes.
	unresolved []*Stream
	// deadline is when the next stream is overtaken, if one is waited for.
	deadline time.Duration
	awaited  bool
}

// output is something to give out.
type output struct {
	kind   Kind
	stream *Stream
	time   int64
	loss   *Loss
	packet []byte
}

// New returns a Merger for a trace, whose metadata may be appended to at any time, but
// before a packet is given that needs it.
func New(trace *ctf.Trace, options Options) *Merger {
	if options.MaxWaiting <= 0 {
		options.MaxWaiting = defaultMaxWaiting
	}
	return &Merger{trace: trace, options: options, passed: math.MinInt64}
}

// Advance tells the time: since any moment, never back. The caller may let it stand
// while nothing is taken out, so that no stream is overtaken for that. It is to be
// called after metadata was appended, too.
func (m *Merger) Advance(now time.Duration) {
	m.now = max(m.now, now)
	if len(m.unresolved) == 0 {
		return
	}
	streams := m.unresolved
	m.unresolved = nil
	for _, s := range streams {
		s.unresolved = false
		s.wake()
	}
}

// await remembers a stream whose promise can't be understood before more metadata
// comes.
func (m *Merger) await(s *Stream) {
	if !s.unresolved {
		s.unresolved = true
		m.unresolved = append(m.unresolved, s)
	}
}

// AddStream makes a stream known. Nothing is given out before it has said something,
// or MaxDelay is over: add all streams that are known before packets of one.
// The ID is the caller's; the name is for messages.
func (m *Merger) AddStream(id uint64, name string) *Stream {
	if m.ended > len(m.streams)/2 {
		m.renumber()
	}
	s := &Stream{
		ID: id, Name: name, merger: m, number: len(m.streams), reader: ctf.NewReader(m.trace),
		promise: math.MinInt64, key: math.MinInt64,
	}
	m.streams = append(m.streams, s)
	m.order.add()
	m.settle(s)
	return s
}

// renumber gives the streams that have not ended the least numbers, in the order that
// they have: any number of streams may be added, one after the other.
func (m *Merger) renumber() {
	m.stopRunning()
	living := m.streams[:0]
	for _, s := range m.streams {
		if s != nil {
			m.order.renumber(s.number, len(living))
			s.number = len(living)
			living = append(living, s)
		}
	}
	clear(m.streams[len(living):])
	m.streams, m.ended = living, 0
	m.order.places = m.order.places[:len(living)]
}

// Next gives out what is next. It returns Nothing if that isn't known yet, and after
// an error.
//
// The steps: (1) as long as the stream that the last event is of has an older one than
// all others, take that; otherwise (2) let that stream find its head and its place;
// (3) give out what has to be before the order of time; (4) give out the head of the
// first stream, or (5), if it has none, wait for it or overtake it.
func (m *Merger) Next() Kind {
	if s := m.last; m.running && s.reader.Next() {
		s.read++
		s.key = s.clock.UnixNano(s.reader.Event.Clock)
		if s.key >= m.Time && (s.key < m.bound.time || s.key == m.bound.time && s.number < m.bound.number) {
			m.Time = s.key
			return Event
		}
		m.used = false
		m.settle(s)
	}
	return m.next()
}

// next is Next from step 2 on.
func (m *Merger) next() Kind {
	m.stopRunning()
	m.awaited, m.Late = false, false
	if m.used {
		m.used = false
		m.last.step()
		m.settle(m.last)
	}
	for {
		if len(m.out) > 0 {
			return m.giveOut()
		}
		if m.err != nil || len(m.order.keys) == 0 {
			return Nothing
		}
		s := m.streams[m.order.keys[0].number]
		switch {
		case s.head == headNone:
			if !m.overtake() {
				return Nothing
			}
		case s.key < m.passed && !s.behind():
			m.fallBehind(s, Disordered, s.key)
		default:
			return m.take(s)
		}
	}
}

// giveOut gives out what doesn't wait for its time.
func (m *Merger) giveOut() Kind {
	o := m.out[0]
	n := copy(m.out, m.out[1:])
	m.out[n] = output{}
	m.out = m.out[:n]
	m.Stream, m.Time, m.Loss, m.Packet = o.stream, o.time, o.loss, o.packet
	return o.kind
}

// take gives out the head of the first stream.
func (m *Merger) take(s *Stream) Kind {
	if s.head == headEnd {
		// Nothing has happened at the time of the stream's promise.
		m.Stream, m.Time = s, m.passed
		m.order.remove(s.number)
		m.streams[s.number], s.over = nil, true
		m.ended++
		return StreamEnd
	}
	if m.last != s || m.Stream != s {
		m.changeTo(s)
	}
	m.Time, m.used = s.key, true
	m.Late = s.key < m.passed
	m.passed = max(m.passed, s.key)
	switch s.head {
	case headLossBegin, headLossEnd:
		m.Loss = s.headLoss
		if s.head == headLossBegin {
			return LossBegin
		}
		return LossEnd
	}
	if event := &s.reader.Event; m.Event != event {
		m.Event = event
	}
	if m.Late {
		s.late.Count++
	} else if s.late == nil && len(s.marks) == 0 && s.clock != nil {
		m.running, m.bound = true, m.order.second()
	}
	return Event
}

// changeTo makes a stream the one that is given out. Only this one has the values of a large
// event.
func (m *Merger) changeTo(s *Stream) {
	if m.last != nil && m.last != s {
		m.last.reader.Unload()
	}
	s.reader.Reload()
	m.last, m.Stream = s, s
}

// Err returns why the trace can't be read on; nil if it can.
func (m *Merger) Err() error { return m.err }

// Failed is the stream that can't be read on; nil without an error. The packet to blame
// is the first one of it that was not given back.
func (m *Merger) Failed() *Stream { return m.failed }

// Waiting is how many bytes of packets wait.
func (m *Merger) Waiting() int { return m.waiting }

// fail ends everything because of a stream.
func (m *Merger) fail(s *Stream, err error) {
	if m.err == nil {
		m.err = fmt.Errorf("stream %d (%s): %w", s.ID, s.Name, err)
		m.failed = s
	}
	m.running, m.used = false, false
}
