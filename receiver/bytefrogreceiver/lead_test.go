// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

// A lead of a second. Each step says at what second how many numbers had come, and how
// many may be missing then.
func TestAsManyNumbersMayBeMissingAsCameOfLate(t *testing.T) {
	type step struct {
		at       float64
		received uint64
		most     int64
	}
	for name, steps := range map[string][]step{
		"none, before anything is known":    {{0, 0, 0}, {0.5, 1000, 0}},
		"what came in the last second":      {{0, 0, 0}, {1, 1000, 1000}, {1.5, 5000, 1000}, {2, 6000, 5000}},
		"a share of what came in more time": {{0, 0, 0}, {4, 1000, 250}},
		"hardly any, after an outage":       {{0, 0, 0}, {1, 100_000, 100_000}, {101, 100_100, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := lead{most: time.Second}
			for _, s := range steps {
				now := time.Unix(1000, 0).Add(time.Duration(s.at * float64(time.Second)))
				assert.True(t, l.allows(s.most, s.received, now), "%d at second %v", s.most, s.at)
				assert.False(t, l.allows(s.most+1, s.received, now), "%d at second %v", s.most+1, s.at)
			}
		})
	}
}

// pair are two data connections of a run whose pipeline takes everything. Nothing comes
// on them but what a test says.
type pair struct {
	t             *testing.T
	run           *run
	behind, ahead *dataConnection
	// looks is how often anyone has asked for the time.
	looks atomic.Int64
	// done is closed when what was begun has returned.
	done chan struct{}
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, run: benchmarkRun(t, discard(func(ptrace.Traces) {}))}
	p.run.env.now = func() time.Time { return time.Unix(1000, p.looks.Add(1)) }
	for _, d := range []**dataConnection{&p.behind, &p.ahead} {
		_, conn := net.Pipe()
		made, err := newDataConnection(p.run, newInput(conn, inputBytes, 1024, time.Minute))
		require.NoError(t, err)
		require.NoError(t, p.run.data.attach(made))
		*d = made
	}
	return p
}

// begin lets the connection that is ahead wait before 100 events from number 1000 on.
func (p *pair) begin() {
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		p.ahead.keepTime(numbersFrom(1000), p.run.env.now())
	}()
}

// numbersFrom are 100 events with numbers from first on.
func numbersFrom(first uint32) []bytefrog.Event {
	events := make([]bytefrog.Event, 100)
	for i := range events {
		events[i].Sequence = first + uint32(i)
	}
	return events
}

// waits expects it to look again and again, and to go on waiting.
func (p *pair) waits() {
	p.t.Helper()
	looks := p.looks.Load()
	require.Eventually(p.t, func() bool { return p.looks.Load() > looks+20 }, patience, time.Millisecond)
	require.False(p.t, isClosed(p.done), "expected the connection that is ahead to wait")
}

// goesOn expects it to wait no longer.
func (p *pair) goesOn() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		require.Fail(p.t, "expected the connection that is ahead to go on")
	}
}

func (p *pair) handles(d *dataConnection) { d.in.reader.Store(readerBusy) }

func TestAConnectionThatIsAheadInTimeWaits(t *testing.T) {
	for name, ends := range map[string]func(*pair){
		"until what is missing has come":           func(p *pair) { p.run.stream.Advance(1000, 1000) },
		"until the other has come past it":         func(p *pair) { p.behind.position.Store(1001) },
		"until the other has handled all there is": func(p *pair) { p.behind.in.reader.Store(readerNone) },
		"until the other has handled what its agent can have sent": func(p *pair) {
			p.behind.came.Add(catchUpBytes + uint64(p.run.env.config.Agent.BufferMemory))
		},
		"until the other is read no more":     func(p *pair) { p.run.data.release(p.behind, false) },
		"until it is not to be read any more": func(p *pair) { p.ahead.in.takeAway() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.handles(p.behind)
			p.begin()
			p.waits()
			ends(p)
			p.goesOn()
		})
	}
}

// An agent that is being left has sent more than was read.
func TestAConnectionThatIsAheadInTimeWaitsThoughTheRunIsLeft(t *testing.T) {
	p := newPair(t)
	p.handles(p.behind)
	p.run.leave(endedByAgent())
	p.begin()
	p.waits()
	p.behind.in.reader.Store(readerNone)
	p.goesOn()
}

func TestAConnectionDoesNotWaitInTime(t *testing.T) {
	for name, prepare := range map[string]func(*pair){
		"for one on which nothing has come": func(*pair) {},
		"for one that is ahead of it":       func(p *pair) { p.handles(p.behind); p.behind.position.Store(2000) },
		"for one that is where it is":       func(p *pair) { p.handles(p.behind); p.behind.position.Store(1000) },
		"where nothing is missing":          func(p *pair) { p.handles(p.behind); p.run.stream.Advance(1000, 1000) },
		"where what is missing is lost": func(p *pair) {
			p.handles(p.behind)
			p.run.pacing.forgiven.Store(1000)
		},
		"where what is missing comes soon enough": func(p *pair) {
			p.handles(p.behind)
			p.ahead.lead.numbers = 1000
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			prepare(p)
			p.begin()
			p.goesOn()
		})
	}
}

// However many wait for each other, whoever is furthest behind goes on.
func TestWhoeverIsFurthestBehindGoesOn(t *testing.T) {
	p := newPair(t)
	p.handles(p.behind)
	p.handles(p.ahead)
	p.begin()
	p.waits()
	// Of what it brings, all below is missing too.
	p.behind.keepTime(numbersFrom(500), p.run.env.now())
	p.waits()
	p.run.data.release(p.behind, false)
	p.goesOn()
}

// Events before a gap are not held back with those behind it, and keep nobody waiting.
func TestEventsBeforeAGapDoNotWaitInTimeForThoseBehindIt(t *testing.T) {
	events := append(numbersFrom(0), numbersFrom(1000)...)
	assert.Equal(t, 100, untilGap(events, 0))
	assert.Equal(t, 200, untilGap(events, 1000))
	assert.Equal(t, 200, untilGap(append(numbersFrom(1000), numbersFrom(0)...), 0), "numbers may go back")
	assert.Equal(t, 200, untilGap(append(numbersFrom(1<<32-100), numbersFrom(0)...), 0), "numbers may turn")

	p := newPair(t)
	p.handles(p.behind)
	assert.Len(t, p.ahead.keepTime(events, p.run.env.now()), 100)
	p.run.stream.Advance(100, 100)
	p.behind.position.Store(100)
	go func() { p.ahead.in.takeAway() }()
	assert.Len(t, p.ahead.keepTime(events[100:], p.run.env.now()), 100)
}

// What follows a rename is there, so the wait for it is over, or stands on the
// connection, which is not read.
func TestARenameIsPlacedByWhatFollowsItThoughItsConnectionWaits(t *testing.T) {
	for name, wait := range map[string]func(p *pair, now time.Time){
		"in time": func(p *pair, now time.Time) { assert.NoError(p.t, p.ahead.add(numbersFrom(1000), now)) },
		"in numbers": func(p *pair, _ time.Time) {
			p.ahead.keepPace()
			now := p.run.env.now()
			assert.Less(p.t, now, p.ahead.wake(now), "the connection is read")
			assert.NoError(p.t, p.ahead.add(numbersFrom(1000), now))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.run.env.now = func() time.Time { return time.Unix(1000, p.looks.Add(1)*int64(50*time.Millisecond)) }
			p.handles(p.behind)
			p.ahead.position.Store(500)
			p.run.stream.Advance(500, 100)
			p.run.pacing.limit = 10
			var told []uint64
			p.ahead.batch.SetSend(func(packed callevent.Packed) {
				var batch callevent.Batch
				require.NoError(t, batch.Unpack(packed.Data))
				for _, r := range batch.Renames {
					told = append(told, r.Sequence)
				}
			})
			now := p.run.env.now()
			require.NoError(t, p.ahead.batch.Name(bytefrog.MapThreadName{Thread: 3, Name: "worker"}, now))
			p.done = make(chan struct{})
			go func() {
				defer close(p.done)
				wait(p, now)
			}()
			p.waits()
			p.behind.in.reader.Store(readerNone)
			p.goesOn()
			p.ahead.batch.Flush()
			// What follows it in an empty buffer is 1000 and 1001.
			assert.Equal(t, []uint64{999}, told)
		})
	}
}

// Where events are packed in pieces, the error says what of all was bad.
func TestABadEventBehindAGapIsWhereItIs(t *testing.T) {
	p := newPair(t)
	events := append(numbersFrom(0), numbersFrom(1000)...)
	events[150].Sequence = 1<<31 + 1100
	for i := range events {
		events[i].Type = bytefrog.TypeMethodEntry
	}
	var bad *badData
	require.ErrorAs(t, p.ahead.add(events, p.run.env.now()), &bad)
	assert.EqualValues(t, 150*bytefrog.MethodEntrySize+stream.SequenceOffset, bad.offset)
	assert.Equal(t, 150, p.ahead.fresh)
}

func TestAConnectionIsWhereItsLastNumberIs(t *testing.T) {
	p := newPair(t)
	require.NoError(t, p.ahead.marker(bytefrog.Marker{Sequence: 7, Key: "k"}, p.run.env.now()))
	assert.EqualValues(t, 7, p.ahead.position.Load())
	require.NoError(t, p.ahead.add(numbersFrom(8), p.run.env.now()))
	assert.EqualValues(t, 107, p.ahead.position.Load())
}
