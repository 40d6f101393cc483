// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/pace"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

// pair has two data connections of a run that may be ahead by ten numbers. The pipeline accepts
// everything. No data arrives on them, and no goroutine reads them, so they count as busy.
type pair struct {
	t             *testing.T
	run           *run
	behind, ahead *dataConnection
	// looks counts the calls of Now.
	looks atomic.Int64
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, run: startedRun(t, discard(func(ptrace.Traces) {}))}
	p.run.env.Receiver.Now = func() time.Time { return time.Unix(1000, p.looks.Add(1)) }
	p.run.pace = pace.NewGroup(p.run.stream, 10, 4<<20)
	for _, d := range []**dataConnection{&p.behind, &p.ahead} {
		_, conn := net.Pipe()
		made, err := newDataConnection(p.run, conn)
		require.NoError(t, err)
		require.NoError(t, p.run.data.attach(made.in))
		*d = made
	}
	return p
}

// readBehind makes the connection that is behind wait for bytes, which do not arrive.
func (p *pair) readBehind() {
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = p.behind.in.Read(p.run.env.Receiver.Now(), time.Time{}) })
	p.t.Cleanup(func() {
		p.behind.in.TakeAway()
		reading.Wait()
	})
	require.True(p.t, testkit.Happens(p.behind.in.CaughtUp))
}

// numbersFrom returns 100 events with numbers from first on.
func numbersFrom(first uint32) []bytefrog.Event {
	events := make([]bytefrog.Event, 100)
	for i := range events {
		events[i].Sequence = first + uint32(i)
	}
	return events
}

func TestAConnectionThatIsAheadWaitsThoughItsRunEnds(t *testing.T) {
	p := newPair(t)
	p.run.life.leave(endedByAgent())
	done := make(chan error)
	go func() { done <- p.ahead.pack(numbersFrom(1000), p.run.env.Receiver.Now()) }()
	require.True(t, testkit.Happens(p.ahead.member.Waits))
	require.Empty(t, done, "the agent has sent more than was read")
	p.ahead.in.TakeAway()
	require.NoError(t, <-done)
}

// While the pipeline holds another connection up, the missing numbers will arrive. They are not
// forgiven, even after a long time.
func TestMissingNumbersAreNotForgivenWhileAnotherConnectionIsHeldUp(t *testing.T) {
	p := newPair(t)
	p.run.env.Receiver.Now = func() time.Time { return time.Unix(60*p.looks.Add(1), 0) }
	done := make(chan error)
	go func() { done <- p.ahead.pack(numbersFrom(1000), p.run.env.Receiver.Now()) }()
	require.True(t, testkit.Happens(p.ahead.member.Waits))
	looks := p.looks.Load()
	require.True(t, testkit.Happens(func() bool { p.run.pace.Changed(); return p.looks.Load() > looks+20 }))
	require.Empty(t, done, "expected the connection to wait for the one that is held up")
	p.readBehind()
	require.NoError(t, <-done)
}

// The name of an event can be on its own connection, which is not read while it waits.
func TestEventsWaitForNamesWhileAnotherConnectionWaits(t *testing.T) {
	p := newPair(t)
	done := make(chan error)
	go func() { done <- p.ahead.pack(numbersFrom(1000), p.run.env.Receiver.Now()) }()
	require.True(t, testkit.Happens(p.ahead.member.Waits))
	p.behind.in.OnWait(func() {}) // the connection ahead does not notice, and waits on
	p.readBehind()
	other := &dataConnection{run: p.run, member: p.ahead.member, in: p.ahead.in}
	assert.False(t, other.awaitNames(p.run.env.Receiver.Now()).Over)
	p.ahead.in.TakeAway()
	require.NoError(t, <-done)
	assert.True(t, other.awaitNames(p.run.env.Receiver.Now()).Over)
}

// If events are packed in pieces, the error has the position in all of them.
func TestABadEventBehindAGapIsWhereItIs(t *testing.T) {
	p := newPair(t)
	p.behind.member.Leave()
	events := append(numbersFrom(0), numbersFrom(1000)...)
	events[150].Sequence = 1<<31 + 1100
	for i := range events {
		events[i].Type = bytefrog.TypeMethodEntry
	}
	var bad *connreader.BadData
	require.ErrorAs(t, p.ahead.pack(events, p.run.env.Receiver.Now()), &bad)
	assert.EqualValues(t, 150*bytefrog.MethodEntrySize+stream.SequenceOffset, bad.Offset)
	assert.Equal(t, 150, p.ahead.fresh)
}

func TestAConnectionIsWhereItsLastNumberIs(t *testing.T) {
	p := newPair(t)
	p.readBehind()
	require.NoError(t, p.ahead.marker(bytefrog.Marker{Sequence: 7, Key: "k"}, p.run.env.Receiver.Now()))
	assert.EqualValues(t, 7, p.ahead.member.Position())
	require.NoError(t, p.ahead.pack(numbersFrom(8), p.run.env.Receiver.Now()))
	assert.EqualValues(t, 107, p.ahead.member.Position())
}
