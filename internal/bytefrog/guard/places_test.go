// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/testkit"
)

// strangers sets the number of open connections without an accepted agent.
func strangers(n int) option { return func(g *Guard) { g.slots = slots.New(slots.Options{Max: n}) } }

// Connections of accepted agents need no place. Otherwise agents would wait for each other.
func TestAgentsDoNotWaitForEachOthersPlaces(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, strangers(1))
	_, first := b.start(t.Context(), &counting{slow: true, until: 5000})
	var all []<-chan bytefrogagent.Result
	for range 4 {
		_, r := b.start(t.Context(), &counting{until: 1000})
		all = append(all, r)
	}
	for _, results := range append(all, first) {
		r := ended(t, results)
		assert.Equal(t, bytefrogagent.Completed, r.Outcome, r.Reason)
	}
	c.awaitEnds(5)
}

// Programs that wait for a place when the guard ends get one, and run untraced. With a closed connection they would
// end.
func TestAnAgentThatWaitsForAPlaceWhenTheGuardEndsRunsUntraced(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, strangers(1), func(g *Guard) { g.timing.ready = patience })
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	require.True(t, b.guard.slots.AdmitAlways(near).Establish(), "as of one that is refused")
	const waiting = 16
	dialed := make(chan struct{}, waiting)
	var all []<-chan bytefrogagent.Result
	for range waiting {
		_, results := b.start(t.Context(), &counting{}, func(o *bytefrogagent.Options) {
			o.Dial = func(ctx context.Context) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.address)
				dialed <- struct{}{}
				return conn, err
			}
		})
		all = append(all, results)
	}
	for range waiting {
		<-dialed
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, b.guard.Shutdown(ctx))
	for _, results := range all {
		r := ended(t, results)
		assert.Contains(t, []bytefrogagent.Outcome{bytefrogagent.Refused, bytefrogagent.Untraced}, r.Outcome, r.Reason)
	}
}

// A silent connection does not belong to an agent, because an agent sends hello within milliseconds.
func TestSilentConnectionsMakeRoomInTheGuard(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, strangers(1))
	silent, err := net.Dial("tcp", b.address)
	require.NoError(t, err)
	defer silent.Close()
	b.await("the silent one to have the place", func() bool { return b.guard.slots.Waiting() == 1 })
	_, results := b.start(t.Context(), &counting{until: 100})
	r := ended(t, results)
	assert.Equal(t, bytefrogagent.Completed, r.Outcome, r.Reason)
	require.NoError(t, silent.SetReadDeadline(time.Now().Add(patience)))
	_, err = silent.Read(make([]byte, 1))
	require.Error(t, err)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is closed")
	c.awaitEnds(1)
}

// A peer that sends only hello does not count as an agent.
func TestAConnectionThatSentOnlyHelloLosesItsPlace(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.MaxAgents, g.timing.linger = 1, 200*time.Millisecond })
	for name, sent := range map[string][]byte{
		"and nothing more":    nil,
		"and half a message":  {byte(bytefrog.TypeHeartbeat), 0},
		"and what can't be":   {77, 77},
		"and one heartbeat":   bytefrog.Heartbeat{Mode: bytefrog.ModeInitializing}.AppendTo(nil),
		"after another's end": nil,
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", b.address)
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Write(append(bytefrog.Hello{Version: 1}.AppendTo(nil), sent...))
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
			_, err = io.Copy(io.Discard, conn)
			assert.NoError(t, err)
			b.await("its place to be free", func() bool { return b.guard.State().Agents == 0 })
		})
	}
	_, results := b.start(t.Context(), &counting{until: 100})
	r := ended(t, results)
	assert.Equal(t, bytefrogagent.Completed, r.Outcome, r.Reason)
}

// A silent agent without a collector does not use a place.
func TestAForsakenAgentDoesNotCountForMaxAgents(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.MaxAgents, g.timing.answer = 1, time.Hour })
	first := b.byHand(t)
	first.data()
	s := b.guard.sessions()[0]
	unheard := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard = s.heard.Add(-2 * forsakenBeats * s.configuration.HeartbeatInterval)
	}
	unheard()
	assert.False(t, s.isForsaken(time.Now()), "its collector checks whether it lives")
	c.leave()
	first.hears(bytefrog.TypeSuspend)
	b.await("the loss", func() bool { return s.current() == nil })
	assert.True(t, s.isForsaken(time.Now()))
	second := b.byHand(t)
	assert.NotZero(t, second.configuration.DataConnections)
	first.say(bytefrog.Heartbeat{Mode: bytefrog.ModeSuspended})
	b.await("its next message", func() bool { return !s.isForsaken(time.Now()) })
	third := b.byHand(t)
	assert.Zero(t, third.configuration.DataConnections, "refused")
}
