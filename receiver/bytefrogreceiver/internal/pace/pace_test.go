// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = time.Minute

// bed is a group of connections that may be ahead by ten numbers. Only changes wake a connection
// that waits: its patience is an hour.
type bed struct {
	t      *testing.T
	group  *Group
	stream *stream.Stream
	// now is the time in nanoseconds, of which each look takes one.
	now  atomic.Int64
	stop chan struct{}
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, stop: make(chan struct{})}
	b.stream = stream.New(stream.Settings{Now: time.Now, Memory: runmemory.New(budget.New(1<<40).Group("test"), 1<<20, nil)})
	b.group = NewGroup(b.stream, 10, 1000)
	b.group.patience = time.Hour
	return b
}

// connection is a member of which a test says whether it is idle.
type connection struct {
	*Member
	busy atomic.Bool
}

// at adds a connection with a position.
func (b *bed) at(position uint64, busy bool) *connection {
	c := &connection{}
	c.Member = b.group.NewMember(func() bool { return !c.busy.Load() })
	c.busy.Store(busy)
	c.position.Store(position)
	c.Join()
	return c
}

func (c *connection) becomesIdle() {
	c.busy.Store(false)
	c.MayBeIdle()
}

func (b *bed) receive(next, messages uint64) {
	b.stream.Advance(next, messages)
	b.group.Changed()
}

func (b *bed) waiting() *Waiting {
	return &Waiting{
		Now:    func() time.Time { return time.Unix(1000, b.now.Add(1)) },
		Attend: func(time.Time) time.Time { return time.Time{} },
		Stop:   b.stop,
	}
}

// begin has a connection wait before 100 events with numbers from first on.
func (b *bed) begin(c *connection, first uint32) (done chan []bytefrog.Event) {
	done = make(chan []bytefrog.Event, 1)
	go func() { done <- c.Await(numbersFrom(first), b.waiting()) }()
	return done
}

func numbersFrom(first uint32) []bytefrog.Event {
	events := make([]bytefrog.Event, 100)
	for i := range events {
		events[i].Sequence = first + uint32(i)
	}
	return events
}

func (b *bed) expectWait(c *connection, done chan []bytefrog.Event) {
	b.t.Helper()
	require.True(b.t, testkit.Happens(c.Waits))
	// It checks again once, and waits on.
	looks := b.now.Load()
	b.group.Changed()
	require.True(b.t, testkit.Happens(func() bool { return b.now.Load() > looks }))
	require.Empty(b.t, done, "expected the connection to wait")
}

func (b *bed) expectEvents(done chan []bytefrog.Event) []bytefrog.Event {
	b.t.Helper()
	select {
	case events := <-done:
		return events
	case <-time.After(testTimeout):
		require.Fail(b.t, "expected the connection to continue")
		return nil
	}
}

func TestAConnectionThatIsAheadWaits(t *testing.T) {
	for name, end := range map[string]func(b *bed, behind *connection){
		"until the missing numbers have arrived":     func(b *bed, _ *connection) { b.receive(1000, 1000) },
		"until few enough are missing":               func(b *bed, _ *connection) { b.receive(990, 990) },
		"until the other connection is ahead":        func(_ *bed, behind *connection) { behind.MoveTo(1001) },
		"until the other connection is not read":     func(_ *bed, behind *connection) { behind.Leave() },
		"until it is not to be read any more itself": func(b *bed, _ *connection) { close(b.stop) },
	} {
		for state, busy := range map[string]bool{"busy": true, "idle": false} {
			t.Run(name+", which is "+state, func(t *testing.T) {
				b := newBed(t)
				behind, ahead := b.at(0, busy), b.at(0, false)
				done := b.begin(ahead, 1000)
				b.expectWait(ahead, done)
				end(b, behind)
				assert.Len(t, b.expectEvents(done), 100)
			})
		}
	}
}

func TestAConnectionDoesNotWait(t *testing.T) {
	for name, prepare := range map[string]func(b *bed, other *connection){
		"for a connection that is ahead of it":      func(_ *bed, other *connection) { other.MoveTo(2000) },
		"for a connection that is where it is":      func(_ *bed, other *connection) { other.MoveTo(1000) },
		"if no numbers are missing":                 func(b *bed, _ *connection) { b.receive(1000, 1000) },
		"if as many numbers are missing as may be":  func(b *bed, _ *connection) { b.receive(1000, 990) },
		"if the missing numbers were forgiven":      func(b *bed, _ *connection) { b.receive(1000, 10); b.group.forgiven.Store(990) },
		"if all other connections are read no more": func(_ *bed, other *connection) { other.Leave() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			other, ahead := b.at(0, true), b.at(0, false)
			prepare(b, other)
			assert.Len(t, b.expectEvents(b.begin(ahead, 1000)), 100)
		})
	}
}

func TestTheConnectionThatIsFurthestBehindContinues(t *testing.T) {
	b := newBed(t)
	last, middle, first := b.at(0, true), b.at(0, true), b.at(0, true)
	waits := b.begin(first, 3000)
	b.expectWait(first, waits)
	alsoWaits := b.begin(middle, 2000)
	b.expectWait(middle, alsoWaits)
	b.expectEvents(b.begin(last, 0))
	last.Leave()
	b.expectEvents(alsoWaits)
	require.Empty(t, waits)
	middle.Leave()
	b.expectEvents(waits)
}

func TestMissingNumbersAreForgivenWhenNothingArrives(t *testing.T) {
	for name, end := range map[string]func(behind *connection){
		"and the other connection becomes idle": (*connection).becomesIdle,
		"and the other connection has handled more than its backlog": func(behind *connection) {
			behind.Arrived(socketBytes + 1000)
			behind.group.Changed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.group.patience = 2 * time.Nanosecond
			behind, ahead := b.at(0, true), b.at(0, true)
			done := b.begin(ahead, 1000)
			for range 5 {
				b.expectWait(ahead, done) // the other connection is busy
			}
			end(behind)
			b.expectEvents(done)
			assert.EqualValues(t, 1000, b.group.forgiven.Load())
			b.receive(1100, 100)
			assert.Len(t, b.expectEvents(b.begin(ahead, 1110)), 100, "ten more may be missing")
			// Forgiven numbers that arrive after all are not forgiven a second time.
			b.receive(0, 900)
			behind.busy.Store(true)
			done = b.begin(ahead, 2000)
			b.expectWait(ahead, done)
			assert.EqualValues(t, 100, b.group.forgiven.Load())
			close(b.stop)
			b.expectEvents(done)
		})
	}
}

func TestTwoConnectionsThatAreAheadDoNotWaitForEachOther(t *testing.T) {
	b := newBed(t)
	b.group.patience = 2 * time.Nanosecond
	b.at(0, false)
	middle, first := b.at(0, true), b.at(0, true)
	done := make(chan []bytefrog.Event, 2)
	for c, sequence := range map[*connection]uint32{middle: 1000, first: 2000} {
		go func() {
			events := c.Await(numbersFrom(sequence), b.waiting())
			c.becomesIdle() // nothing more arrives
			done <- events
		}()
	}
	b.expectEvents(done)
	b.expectEvents(done)
}

func TestEventsBeforeAGapDoNotWaitForThoseBehindIt(t *testing.T) {
	assert.Equal(t, 100, untilGap(append(numbersFrom(0), numbersFrom(1000)...), 0))
	assert.Equal(t, 200, untilGap(append(numbersFrom(0), numbersFrom(1000)...), 1000))
	assert.Equal(t, 200, untilGap(append(numbersFrom(1000), numbersFrom(0)...), 0), "numbers may go back")
	assert.Equal(t, 200, untilGap(append(numbersFrom(1<<32-100), numbersFrom(0)...), 0), "numbers may wrap around")

	b := newBed(t)
	b.at(0, true)
	ahead := b.at(0, false)
	events := append(numbersFrom(0), numbersFrom(1000)...)
	assert.Len(t, ahead.Await(events, b.waiting()), 100)
	assert.Zero(t, ahead.Position())
}

func TestABacklogIsHandled(t *testing.T) {
	for name, end := range map[string]func(other *connection){
		"when the other connection is idle":                 (*connection).becomesIdle,
		"when the other connection has left":                func(other *connection) { other.Leave() },
		"when the other connection has handled its backlog": func(other *connection) { other.Arrived(socketBytes + 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			other, own := b.at(0, true), b.at(0, true)
			backlog := own.OthersBacklog()
			assert.False(t, backlog.IsHandled())
			wakes := 0
			backlog.WakeWhenHandled(func() { wakes++ })
			end(other)
			assert.Equal(t, 1, wakes)
			assert.True(t, backlog.IsHandled())
			other.busy.Store(true)
			assert.True(t, backlog.IsHandled(), "it stays so")
		})
	}
}

func TestAnIdleGroupAllocatesNothing(t *testing.T) {
	b := newBed(t)
	b.receive(1000, 1000)
	c := b.at(1000, true)
	events, w := numbersFrom(1000), b.waiting()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		c.Await(events, w)
		c.MoveTo(1000)
		b.group.Changed()
	}))
}
