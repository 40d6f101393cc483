// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// Options configure a Merger. The zero value has the defaults.
type Options struct {
	// MaxDelay is the maximum time that other streams wait for a stream without input. 0 means no maximum, which is
	// right for a complete trace.
	MaxDelay time.Duration
	// MaxWaiting is the number of bytes in waiting packets from which Stream.Wanted returns false for streams that
	// have input. The default is 64 MiB.
	MaxWaiting int
	// Stops is set if the tracer writes an empty packet when tracing stops. Then a loss of cause Stopped is at its
	// end, if the stream continues.
	Stops bool
	// Resumes reports whether an event means that tracing of its process resumes. A loss of cause Stopped ends with
	// it. nil means that there are no such events. It must not retain the event.
	Resumes func(*ctf.Event) bool
	// Damaged is called with a packet that cannot be read, and with its index. The Merger skips the rest of the packet,
	// with a loss of cause Damaged. nil means that such a packet ends the trace with an error.
	Damaged func(*Stream, *Index, error)
}

const defaultMaxWaiting = 64 << 20

// Merger merges the streams of a trace. One goroutine at a time may use it, its streams, and the trace.
type Merger struct {
	// The result of Next. It is valid until the next call.

	// Stream is the stream of the result.
	Stream *Stream
	// Time is the time of the result in nanoseconds since the Unix epoch. It never decreases, except for results that
	// are Late. Events of a stream without clock have the time of the previous result.
	Time int64
	// Event is set for the kind Event.
	Event *ctf.Event
	// Late is set if a newer result was returned before.
	Late bool
	// Loss is set for LossBegin and LossEnd.
	Loss *Loss
	// Packet is set for PacketEnd: the bytes that were passed to Stream.Packet.
	Packet []byte

	trace   *ctf.Trace
	options Options
	now     time.Duration
	// streams are indexed by number. They become nil at StreamEnd. ended counts these.
	streams []*Stream
	ended   int
	waiting int
	err     error
	// failed is the stream that caused err.
	failed *Stream

	// passed is the time of the newest result.
	passed int64
	order  heap
	// out are the results that Next returns before those in order of time.
	out []output
	// last is the stream of the last returned head. used is set if it needs a new head.
	last *Stream
	used bool
	// running is set while last may return further events without use of the heap: those older than bound, the
	// smallest key of the other streams.
	running bool
	bound   key
	// unresolved are streams whose promises need more metadata.
	unresolved []*Stream
	// deadline is the time at which the next stream is overtaken, valid if awaited is set.
	deadline time.Duration
	awaited  bool
}

// output is a result outside the order of time.
type output struct {
	kind   Kind
	stream *Stream
	time   int64
	loss   *Loss
	packet []byte
}

// New returns a Merger for a trace. The caller may append to the trace's metadata at any time before it adds a packet
// that needs it.
func New(trace *ctf.Trace, options Options) *Merger {
	if options.MaxWaiting <= 0 {
		options.MaxWaiting = defaultMaxWaiting
	}
	return &Merger{trace: trace, options: options, passed: math.MinInt64}
}

// awaitMetadata registers a stream whose promise needs more metadata.
func (m *Merger) awaitMetadata(s *Stream) {
	if !s.unresolved {
		s.unresolved = true
		m.unresolved = append(m.unresolved, s)
	}
}

// AddStream adds a stream. Next returns no event until the stream has input, or MaxDelay is over. So add all known
// streams before packets of one. The caller chooses the ID. The name is for messages.
func (m *Merger) AddStream(id uint64, name string) *Stream {
	if m.ended > len(m.streams)/2 {
		m.renumber()
	}
	s := &Stream{
		ID: id, Name: name, merger: m, rank: rank(len(m.streams)), reader: ctf.NewReader(m.trace),
		promise: math.MinInt64, key: math.MinInt64,
	}
	m.streams = append(m.streams, s)
	m.order.addStream()
	m.updateOrder(s)
	return s
}

// renumber assigns the smallest numbers to the streams that have not ended, in their order. So any number of streams
// may be added over time.
func (m *Merger) renumber() {
	m.stopRunning()
	living := m.streams[:0]
	for _, s := range m.streams {
		if s != nil {
			m.order.renumber(s.rank.number(), len(living))
			s.rank = s.rank.renumbered(len(living))
			living = append(living, s)
		}
	}
	clear(m.streams[len(living):])
	m.streams, m.ended = living, 0
	m.order.places = m.order.places[:len(living)]
}

// updateOrder updates a stream's place in the order after its head or promise changed. Other streams do not wait for
// a late stream without head.
func (m *Merger) updateOrder(s *Stream) {
	m.stopRunning()
	if s.late != nil && s.key >= m.passed {
		m.catchUp(s)
	}
	if s.late != nil && s.head == headNone {
		m.order.remove(s.rank.number())
		return
	}
	m.order.put(key{s.key, s.rank})
}

// stopRunning ends the run of the last event's stream.
func (m *Merger) stopRunning() {
	if m.running {
		m.running = false
		m.passed = max(m.passed, m.Time)
	}
}

// catchUp closes the loss that fallBehind opened.
func (m *Merger) catchUp(s *Stream) {
	s.late.To = max(s.late.From, m.passed)
	m.out = append(m.out, output{kind: LossEnd, stream: s, time: m.passed, loss: s.late})
	s.late = nil
}

// Err returns the error that ended the trace, or nil.
func (m *Merger) Err() error { return m.err }

// Failed returns the stream that caused the error, or nil. The first packet of the stream that Next has not returned
// is invalid.
func (m *Merger) Failed() *Stream { return m.failed }

// Waiting returns the number of bytes in waiting packets.
func (m *Merger) Waiting() int { return m.waiting }

// fail ends the trace because of an error in a stream.
func (m *Merger) fail(s *Stream, err error) {
	if m.err == nil {
		m.err = fmt.Errorf("stream %d (%s): %w", s.ID, s.Name, err)
		m.failed = s
	}
	m.running, m.used = false, false
}
