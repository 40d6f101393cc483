// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/testkit/lanenames"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// never is longer than any test takes.
const never = time.Hour

// bed is the bed of a receiver.
type bed struct {
	*receivertestbed.Bed
	receiver *bytefrogReceiver
	// timing replaces the receiver's, unless it is nil.
	timing *timing
}

// option changes the configuration of a receiver, or its bed.
type option func(b *bed, c *Config)

func withoutTraces(b *bed, _ *Config) { b.Next.Traces = nil }

// quickly makes times short, for tests of other things.
func quickly(b *bed, _ *Config) {
	b.timing = &timing{
		Timing: session.Timing{
			Farewell: 200 * time.Millisecond, Quiet: 100 * time.Millisecond, Complete: 10 * time.Millisecond, Drain: never, Discard: 200 * time.Millisecond, Answer: 100 * time.Millisecond, Prepared: 20 * time.Millisecond, Untraced: never,
		},
		parting: 200 * time.Millisecond, control: 30 * time.Millisecond, hello: 200 * time.Millisecond, ready: 20 * time.Millisecond, unproven: never, giveWay: never, slotGrace: never,
	}
}

// patiently makes times long, for tests in which the agent, and not the clock, decides the next
// step.
func patiently(b *bed, c *Config) {
	b.timing = &timing{
		Timing: session.Timing{
			Farewell: never, Quiet: never, Complete: time.Millisecond, Drain: never, Discard: never, Answer: never, Untraced: never, Prepared: time.Nanosecond,
		},
		parting: never, control: never, hello: never, ready: never, unproven: never, giveWay: never, slotGrace: never,
	}
	c.ShutdownTimeout = 10 * time.Minute
}

func newBed(t testing.TB, options ...option) *bed {
	t.Helper()
	b := unstartedBed(t, options...)
	b.Start()
	return b
}

func unstartedBed(t testing.TB, options ...option) *bed {
	t.Helper()
	b := &bed{Bed: receivertestbed.New(t, metadata.Type)}
	config := createDefaultConfig()
	config.Endpoint = "localhost:0"
	config.MaxBlock = 0 // the clock decides nothing
	for _, o := range options {
		o(b, config)
	}
	require.NoError(t, config.Validate())
	r, err := newReceiver(b.Settings, config)
	require.NoError(t, err)
	b.receiver = r.Protocol.(*bytefrogReceiver)
	b.Use(r)
	b.Kit().Overtime = receivertestbed.Patience
	if b.timing != nil {
		b.receiver.env.timing = *b.timing
	}
	return b
}

func (b *bed) address() string { return b.receiver.listener.Addr().String() }

// awaitRuns waits until there are n runs.
func (b *bed) awaitRuns(n int) {
	b.T.Helper()
	b.Await(fmt.Sprintf("%d runs", n), func() bool { return len(b.receiver.env.registry.list()) == n })
}

// logEvents counts the log records of each event name.
func (b *bed) logEvents() map[string]int {
	counts := map[string]int{}
	for _, r := range b.Records("") {
		counts[r.EventName()]++
	}
	return counts
}

var errPermanent = errors.New("never")

// called is a call event with its names, as a person would read it.
type called struct {
	kind      callevent.Kind
	function  string
	lane      uint64
	thread    string
	exception string
	line      uint32
}

// events returns the number of call events in all accepted batches.
func (b *bed) events() int {
	n := 0
	for _, traces := range b.Traces.AllTraces() {
		span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		if v, ok := span.Attributes().Get(callevent.AttributeEvents); ok {
			n += int(v.Int())
		}
	}
	return n
}

// streamSeen is what the pipeline was given of one call stream.
type streamSeen struct {
	events   map[uint64]called
	times    map[uint64]int64
	barriers map[callevent.Barrier]int
	renames  []callevent.Rename
	// twice are numbers that came more than once.
	twice   []uint64
	batches int
	empty   int
	next    uint64
	service string
}

// streams unpacks all accepted batches.
func (b *bed) streams() map[callevent.StreamID]*streamSeen {
	t := b.T
	t.Helper()
	streams := map[callevent.StreamID]*streamSeen{}
	for _, traces := range b.Traces.AllTraces() {
		require.Equal(t, 1, traces.SpanCount())
		resource := traces.ResourceSpans().At(0)
		span := resource.ScopeSpans().At(0).Spans().At(0)
		data, err := callevent.Data(span)
		require.NoError(t, err)
		var batch callevent.Batch
		require.NoError(t, batch.Unpack(data))
		s := streams[batch.Stream]
		if s == nil {
			s = &streamSeen{events: map[uint64]called{}, times: map[uint64]int64{}, barriers: map[callevent.Barrier]int{}}
			streams[batch.Stream] = s
		}
		service, _ := resource.Resource().Attributes().Get(attributeServiceName)
		s.service = service.Str()
		s.add(t, &batch)
	}
	for _, s := range streams {
		s.nameThreads()
	}
	return streams
}

func (s *streamSeen) add(t testing.TB, batch *callevent.Batch) {
	s.batches++
	if batch.Len() == 0 {
		s.empty++
	}
	s.next = max(s.next, batch.Next)
	for _, barrier := range batch.Barriers {
		s.barriers[barrier]++
	}
	s.renames = append(s.renames, batch.Renames...)
	events := make([]callevent.Event, batch.Len())
	batch.Events(events, 0)
	for _, e := range events {
		require.Less(t, e.Sequence, batch.Next)
		if _, twice := s.events[e.Sequence]; twice {
			s.twice = append(s.twice, e.Sequence)
		}
		c := called{kind: e.Kind}
		if e.Kind != callevent.KindSkip {
			c.function, c.line = batch.Functions[e.Function].Qualified, e.Line
			c.lane, c.thread = batch.Lanes[e.Lane].ID, batch.Lanes[e.Lane].Name
			if e.Exception > 0 {
				c.exception = batch.Exceptions[e.Exception-1]
			}
		}
		s.events[e.Sequence], s.times[e.Sequence] = c, e.Time
	}
}

// nameThreads gives each event the name that its thread had, and leaves each rename once.
func (s *streamSeen) nameThreads() {
	s.renames = lanenames.Sorted(s.renames)
	for sequence, c := range s.events {
		c.thread = lanenames.At(s.renames, c.lane, s.times[sequence], c.thread)
		s.events[sequence] = c
	}
}

// only returns the call stream of all accepted batches, which have no other.
func (b *bed) only() *streamSeen {
	b.T.Helper()
	streams := b.streams()
	require.Len(b.T, streams, 1)
	for _, s := range streams {
		return s
	}
	return nil
}

// end is the barrier with which the stream ended.
func (s *streamSeen) end(t testing.TB) callevent.Barrier {
	t.Helper()
	for barrier := range s.barriers {
		if barrier.Kind == callevent.BarrierEnd {
			return barrier
		}
	}
	require.Fail(t, "the call stream has no end")
	return callevent.Barrier{}
}

// breaks are the breaks of the stream.
func (s *streamSeen) breaks() []callevent.Barrier {
	var breaks []callevent.Barrier
	for barrier := range s.barriers {
		if barrier.Kind == callevent.BarrierBreak {
			breaks = append(breaks, barrier)
		}
	}
	return breaks
}

// newReader returns a reader of a control connection.
func newReader(conn net.Conn) *connreader.Reader {
	return connreader.New(conn, connreader.Settings{
		Buffer: controlBytes, MaxMessage: bytefrog.MaxMessageSize(bytefrog.MaxString), MessageTimeout: time.Minute,
	})
}
