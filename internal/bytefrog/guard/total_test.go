// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// At the limit of all agents together the agent that holds most loses its collector, and the others continue.
func TestTheAgentThatHoldsMostLosesItsCollector(t *testing.T) {
	const total = 4 * mib
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address}, narrow, func(g *Guard) { g.options.Silence = time.Hour; g.limit(total) })
	big, small := b.byHand(t), b.byHand(t)
	toBig, toSmall := big.data(), small.data()
	b.await("both to have a collector", func() bool { return b.guard.State().Connected == 2 })
	b.network.stick(true)
	sent := everything(0, 1)
	send := func(to interface{ Write([]byte) (int, error) }, n int) {
		_, err := to.Write(bytes.Repeat(sent, n/len(sent)))
		require.NoError(t, err)
	}
	send(toSmall, total/4)
	b.await("the waiting data of the small one", func() bool { return b.guard.State().Waiting > total/4-2*len(sent) })
	of := b.guard.lookup(small.configuration.RunID)
	link := of.current()
	// This is more than fits beside it.
	send(toBig, total)
	b.await("the loss", func() bool { return b.guard.counts.Losses.Load() > 0 })
	b.await("the count of lost bytes", func() bool { return b.guard.counts.LostBytes.Load() > total/2 })
	assert.EqualValues(t, 1, b.guard.counts.GaveWay.Load())
	assert.False(t, link.isLost(), "the small one's collector is not given up")
	assert.Same(t, link, of.current())
	assert.Greater(t, link.waiting.Load(), int64(total/4-2*len(sent)))
	b.await("the memory of the big one", func() bool { return b.guard.budget.Used() <= total })
	b.network.stick(false)
	b.await("the waiting data to be read", func() bool { return link.isDrained() })
	assert.EqualValues(t, 1, b.guard.counts.Losses.Load())
}

// An agent that holds more names than data loses names.
func TestNamesAreEvictedIfAllAgentsHoldTooMuch(t *testing.T) {
	const total = mib
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.limit(total) })
	big, small := b.byHand(t), b.byHand(t)
	name := func(a *byHand, names int) (bytes int) {
		data := a.data()
		for m := range uint32(names) {
			message := bytefrog.MapMethod{Method: m, Signature: fmt.Sprintf("demo/M.m%d;1;%s", m, strings.Repeat("x", kib))}.AppendTo(nil)
			write(t, data, message)
			bytes += len(message) + nameBytes
		}
		return bytes
	}
	held := name(small, total/4/kib)
	of := b.guard.lookup(small.configuration.RunID)
	b.await("the small one's names", func() bool { return of.names.size() == held })
	name(big, 2*total/kib)
	b.await("all to be passed", func() bool { return b.guard.State().Waiting == 0 && b.guard.counts.Bytes.Load() > 2*total })
	b.await("names to be forgotten", func() bool { return b.guard.State().Names <= total })
	assert.Positive(t, b.guard.counts.Forgotten.Load())
	assert.Positive(t, b.guard.counts.GaveWay.Load())
	assert.Equal(t, held, of.names.size(), "the small one's are all there")
	assert.Zero(t, b.guard.counts.Losses.Load())
}

// While the guard tries to connect, an agent without a collector can still send names.
func TestNamesAreEvictedWhileNoCollectorAnswers(t *testing.T) {
	const total = mib
	good, silent := play(t, starting(t, 1)), play(t, nil)
	b := newBed(t, []string{good.address, silent.address}, func(g *Guard) { g.limit(total); g.options.ConnectTimeout = patience })
	a := b.byHand(t)
	data := a.data()
	b.await("a collector", func() bool { return b.guard.State().Connected == 1 })
	b.network.cut()
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.DataBreak{})
	a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeSuspended})
	b.await("the hello to a collector that does not answer", func() bool { return len(silent.greeted) > 0 })
	require.Zero(t, b.guard.State().Connected)
	sent := 0
	for m := range uint32(4 * total / kib) {
		message := bytefrog.MapMethod{Method: m, Signature: fmt.Sprintf("demo/M.m%d;1;%s", m, strings.Repeat("x", kib))}.AppendTo(nil)
		write(t, data, message)
		sent += len(message)
	}
	b.await("all to be read", func() bool { return b.guard.counts.Bytes.Load() >= uint64(sent) })
	b.await("names to be forgotten", func() bool { return b.guard.State().Names <= total })
	assert.Positive(t, b.guard.counts.Forgotten.Load())
	assert.LessOrEqual(t, b.guard.budget.Used(), int64(total))
	assert.Len(t, silent.greeted, 1, "the guard still waits for the same collector")
}

func TestByDefaultAllAgentsHaveAShareOfTheMemory(t *testing.T) {
	o := DefaultOptions()
	assert.LessOrEqual(t, o.totalMemory(), int64(maxTotal))
	assert.Positive(t, o.totalMemory())
	o.TotalMemory = 5 * mib
	assert.EqualValues(t, 5*mib, o.totalMemory())
}

// A session that has ended sends no command, and its memory is free.
func TestASessionThatHasEndedHoldsNoMemory(t *testing.T) {
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.prepared = patience })
	a := b.byHand(t)
	data := a.data()
	s := b.guard.lookup(a.configuration.RunID)
	b.await("it to have joined", func() bool { return isClosed(s.data.joined) })
	_ = data.Close()
	_ = a.control.Close()
	<-s.over
	assert.Equal(t, hq.Ended, s.agent.Status().State)
	assert.Zero(t, b.guard.budget.Used())
}
