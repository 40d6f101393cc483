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

// These tests are about runs that begin later than the agent.

// suspends makes the agent answer suspend before a number, and waits for unsuspend.
func (a *byHand) suspends(before uint32) {
	a.t.Helper()
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.DataBreak{Sequence: before})
	a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeSuspended})
	a.hears(bytefrog.TypeUnsuspend)
}

// The times of a later run are right, however old the agent is.
func TestTimesOfALaterRunAreRight(t *testing.T) {
	one := func(c *bytefrogreceiver.Config) { c.Agent.DataConnections, c.NameWait = 1, 100*time.Millisecond }
	first, second := newCollector(t, testkit.Address(t), one), newCollector(t, testkit.Address(t), one)
	b := newBed(t, []string{first.address})
	a := b.byHand(t)
	data := a.data()
	s := b.guard.sessions()[0]
	// By all clocks the agent began an hour ago.
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
		// For the collector the run begins when it sends start, and for the guard when start arrives.
		require.WithinRange(t, time.Unix(0, ns), at.Add(-patience/2), at.Add(patience/2))
	}
}

// Names of a later run are known in the runs after it.
func TestNamesOfALaterRunAreRememberedToo(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address})
	a := b.byHand(t)
	data := a.data()
	s := b.guard.sessions()[0]
	b.await("it to obey commands", func() bool { return s.agent.Status().State == hq.Tracing })
	c.leave()
	a.suspends(0)
	assert.Zero(t, s.names.size())
	write(t, data, everything(0, 1))
	c.awaitEvents(inEverything)
	assert.Positive(t, s.names.size())
}

// A later run's data connections end with the agent's. They are cut off if one of those was.
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

// Class reports for a collector that reads nothing are bounded.
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

// No data is added for a collector that was given up because too much data waits.
func TestNothingIsSentToALostCollector(t *testing.T) {
	l := &link{flow: flow{chunks: &chunks{}, wakeUp: func() {}}, cancel: func() {}, lost: make(chan struct{})}
	l.control = newOutlet(&l.flow, false, l.writeFailed)
	s := &session{env: &environment{options: DefaultOptions()}, link: l}
	assert.True(t, s.sendToCollector([]byte{1}))
	l.lose(loss{})
	assert.False(t, s.sendToCollector([]byte{1}))
	assert.EqualValues(t, 1, l.waiting.Load())
}
