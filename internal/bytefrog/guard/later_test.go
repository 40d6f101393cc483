// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

// What is true of a run that begins when the agent has been traced before.

// suspends has the agent answer that it suspends before a number, and awaits that it may go on.
func (a *byHand) suspends(before uint32) {
	a.t.Helper()
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.DataBreak{Sequence: before})
	a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeSuspended})
	a.hears(bytefrog.TypeUnsuspend)
}

// The events of a later run have happened when the agent says, however long it had been there.
func TestTimesOfALaterRunAreTrue(t *testing.T) {
	one := func(c *bytefrogreceiver.Config) { c.Agent.DataConnections, c.NameWait = 1, 100*time.Millisecond }
	first, second := newCollector(t, testkit.Address(t), one), newCollector(t, testkit.Address(t), one)
	b := newBed(t, []string{first.address})
	a := b.byHand(t)
	data := a.data()
	s := b.guard.sessions()[0]
	// An hour has gone since the agent began, by all clocks.
	const age = time.Hour
	b.network.move(first.address, second.address)
	s.passing.Lock()
	s.startedAt = s.startedAt.Add(-age)
	s.passing.Unlock()
	b.network.cut()
	a.suspends(0)
	l := s.current()
	at := l.began.Add(time.Minute)
	write(t, data, everything(0, uint32(at.Sub(s.startedAt).Milliseconds())))
	b.await("the events", func() bool { return second.number() == inEverything })
	for _, ns := range second.only().times {
		// The collector takes for the run's begin when it said start, and the guard when that came.
		require.WithinRange(t, time.Unix(0, ns), at.Add(-patience/2), at.Add(patience/2))
	}
}

// Names that came in a later run are known in those after it.
func TestNamesOfALaterRunAreRememberedToo(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address})
	a := b.byHand(t)
	data := a.data()
	s := b.guard.sessions()[0]
	b.await("it to take orders", func() bool { return s.agent.Status().State == hq.Tracing })
	c.leave()
	a.suspends(0)
	assert.Zero(t, s.names.size())
	write(t, data, everything(0, 1))
	c.awaitEvents(inEverything)
	assert.Positive(t, s.names.size())
}

// A later run's data connections end when the agent's have, and look cut off where one was.
func TestALaterRunsDataConnectionsEnd(t *testing.T) {
	for name, ends := range map[string]struct {
		cut  bool
		want string
	}{"closed": {false, "data 1 ended"}, "cut off": {true, "data 1 cut off"}} {
		t.Run(name, func(t *testing.T) {
			c := watch(t, starting(t, 1))
			b := newBed(t, []string{c.address})
			a := b.byHand(t)
			data := a.data()
			write(t, data, everything(0, 1))
			c.awaitEvents(inEverything)
			c.leave()
			a.suspends(inEverything)
			write(t, data, everything(inEverything, 1))
			c.awaitEvents(2 * inEverything)
			if ends.cut {
				require.NoError(t, data.SetLinger(0))
			}
			_ = data.Close()
			c.await(ends.want, 1)
		})
	}
}

// What an agent says of classes to a collector that takes nothing is bounded.
func TestClassReportsWithoutEndAreBounded(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.Memory, g.options.Silence = mib, time.Hour })
	a := b.byHand(t)
	a.data()
	b.network.stick(true)
	class := bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: string(bytes.Repeat([]byte("a"), 1000))}
	reports := bytes.Repeat(class.AppendTo(nil), 100)
	for b.guard.counts.Losses.Load() == 0 {
		require.Less(t, b.guard.State().Waiting, 2*mib)
		require.NoError(t, a.control.SetWriteDeadline(time.Now().Add(patience)))
		_, err := a.control.Write(reports)
		require.NoError(t, err)
	}
}

// Nothing is added to what waits for a collector that was given up because too much does.
func TestNothingIsSentToALostCollector(t *testing.T) {
	l := &link{flow: flow{chunks: &chunks{}, wakeUp: func() {}}, cancel: func() {}, lost: make(chan struct{})}
	l.control = newOutlet(&l.flow, false, l.writeFailed)
	s := &session{env: &environment{options: DefaultOptions()}, link: l}
	assert.True(t, s.sendToCollector([]byte{1}))
	l.lose(loss{})
	assert.False(t, s.sendToCollector([]byte{1}))
	assert.EqualValues(t, 1, l.waiting.Load())
}
