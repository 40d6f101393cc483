// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

// If two connections of the agent share one of the collector, a cut connection leaves no partial message before the
// events of the other.
func TestACutConnectionDoesNotDamageASharedOne(t *testing.T) {
	connections := func(n int) func(c *bytefrogreceiver.Config) {
		return func(c *bytefrogreceiver.Config) { c.Agent.DataConnections, c.NameWait = n, 100*time.Millisecond }
	}
	for name, part := range map[string][]byte{
		"inside a message": bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeMethodEntry, Sequence: 10, Method: 7})[:6],
		"between messages": nil,
	} {
		t.Run(name, func(t *testing.T) {
			first := newCollector(t, testkit.Address(t), connections(2))
			b := newBed(t, []string{first.address})
			a := b.byHand(t)
			x, y := a.data(), a.data()
			_, err := x.Write(everything(0, 1))
			require.NoError(t, err)
			_, err = y.Write(everything(inEverything, 1))
			require.NoError(t, err)
			b.await("all", func() bool { return first.number() == 2*inEverything })
			second := newCollector(t, testkit.Address(t), connections(1))
			b.network.move(first.address, second.address)
			b.network.cut()
			require.Equal(t, bytefrog.TypeSuspend, a.hear().Type())
			a.say(bytefrog.DataBreak{Sequence: 2 * inEverything})
			a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeSuspended})
			require.Equal(t, bytefrog.TypeUnsuspend, a.hear().Type())
			_, err = x.Write(part)
			require.NoError(t, err)
			require.NoError(t, x.SetLinger(0))
			require.NoError(t, x.Close())
			s := b.guard.sessions()[0]
			b.await("the end of one", func() bool {
				s.data.mu.Lock()
				defer s.data.mu.Unlock()
				return len(s.data.open) == 1
			})
			_, err = y.Write(everything(2*inEverything, 1000))
			require.NoError(t, err)
			require.NoError(t, y.Close())
			require.NoError(t, a.control.Close())
			second.awaitEnds(1)
			second.stop()
			assert.Len(t, second.only().events, inEverything)
			for n := range second.only().events {
				assert.Less(t, n, uint64(inEverything), "a number that the agent did not use")
			}
		})
	}
}

// The collector's connection ends with the agent's.
func TestADataConnectionIsNotOpenedAgain(t *testing.T) {
	c := newCollector(t, testkit.Address(t), func(c *bytefrogreceiver.Config) { c.Agent.DataConnections = 1 })
	b := newBed(t, []string{c.address})
	a := b.byHand(t)
	require.NoError(t, a.data().Close())
	s := b.guard.sessions()[0]
	b.await("its end", func() bool {
		s.data.mu.Lock()
		defer s.data.mu.Unlock()
		return len(s.data.open) == 0
	})
	_, err := s.data.attach(nil)
	assert.ErrorIs(t, err, errRunFull)
}
