// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// linger connects n agents with a data connection each, and gives them up one after
// the other.
func linger(b *bed, n int) []*agent {
	b.T.Helper()
	var agents []*agent
	for i := range n {
		a := connect(b, 1)
		a.join()
		b.receiver.env.registry.lookup(a.configuration.RunID).Leave(session.Unresponsive(time.Second))
		a.control.expectError()
		b.Await("it to linger", func() bool { return b.Counter("lingering") == int64(2*(i+1)) })
		agents = append(agents, a)
	}
	return agents
}

func TestTheOldestThatLingerMakeRoomDataFirst(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxConnections = 5 })
	agents := linger(b, 2)
	var silent []*peer
	for range 4 {
		silent = append(silent, dial(t, b.address()))
	}
	// One was free; the others had to be made.
	agents[0].data[0].expectEnd()
	agents[0].control.expectEnd()
	agents[1].data[0].expectEnd()
	b.Await("five connections", func() bool { return b.openConnections() == 5 })
	assert.EqualValues(t, 3, b.Counter("lingering_cut"))
	b.Await("one that lingers", func() bool { return b.Counter("lingering") == 1 })
	assert.Zero(t, b.Counter("refused"))
	for _, p := range silent {
		p.close()
	}
	agents[1].control.close()
	b.Await("no connection", func() bool { return b.openConnections() == 0 })
}

func TestNoConnectionIsCutWhereThatMakesTooLittleRoom(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxConnections = 4 })
	agents := linger(b, 1)
	first := connect(b, 1)
	first.join()
	assert.Zero(t, b.Counter("lingering_cut"), "four are open")
	second := dial(t, b.address())
	agents[0].data[0].expectEnd()
	third := dial(t, b.address())
	agents[0].control.expectEnd()
	fourth := dial(t, b.address())
	b.Await("one more than there may be", func() bool { return b.openConnections() == 5 })
	assert.EqualValues(t, 2, b.Counter("lingering_cut"))
	for _, p := range []*peer{second, third, fourth} {
		p.close()
	}
	first.finish()
	b.awaitRuns(0)
}

// Refused agents linger too, and may be stopped for hours.
func TestAnAgentIsReadWhileRefusedAgentsDoNotClose(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxConnections = 2 })
	a := connect(b, 1)
	a.join()
	turnAway := func() *peer {
		p := dial(t, b.address())
		p.send(bytefrog.Hello{Version: 1}, bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Shop"})
		p.expectToBeTurnedAway("limits.max_connections is reached (2)")
		return p
	}
	var stopped []*peer
	for i := range heardBeyond {
		stopped = append(stopped, turnAway())
		b.Await("it to linger", func() bool { return b.Counter("lingering") == int64(i+1) })
	}
	assert.Zero(t, b.Counter("lingering_cut"))
	stopped = append(stopped, turnAway(), turnAway())
	// The two that waited longest had to make room.
	stopped[0].expectEnd()
	stopped[1].expectEnd()
	assert.EqualValues(t, 2, b.Counter("lingering_cut"))
	assert.Empty(t, b.Log.FilterMessageSnippet("closed before the handshake").All())
	for _, p := range stopped {
		p.close()
	}
	a.finish()
	b.awaitRuns(0)
}

func TestALateDataConnectionOfAnEndedRunJoinsNoOtherRun(t *testing.T) {
	b := newBed(t, quickly)
	// It was stopped before it opened its data connections.
	stopped := connect(b, 1)
	r := b.receiver.env.registry
	r.lookup(stopped.configuration.RunID).Leave(session.Unresponsive(time.Second))
	b.awaitRuns(0)
	for range maxRunID - 1 {
		r.close(openRun(t, r))
	}
	other := connect(b, 1)
	assert.NotEqual(t, stopped.configuration.RunID, other.configuration.RunID)
	late := dial(t, b.address())
	late.send(bytefrog.DataHello{Run: stopped.configuration.RunID})
	assert.Contains(t, late.expectError(), "is unknown")
	late.expectEnd()
	// That is how it hears that its tracing is over, and all that it hears.
	require.NoError(t, stopped.control.conn.(*net.TCPConn).CloseWrite())
	stopped.control.expectEnd()
	b.Await("it to be gone", func() bool { return b.Counter("lingering") == 0 })
	other.finish()
	b.awaitRuns(0)
}

func TestAnAgentThatLingersHasUntilTheShutdownsTimeIsOver(t *testing.T) {
	b := newBed(t, patiently, func(b *bed, c *Config) {
		b.timing.parting = time.Millisecond
		c.ShutdownTimeout = 500 * time.Millisecond
	})
	a := linger(b, 1)[0]
	done := b.shutdownInBackground()
	a.data[0].expectEnd()
	assert.Error(t, b.receiver.env.receiver.Delivering.Err(), "the shutdown's time is over")
	a.expectDataToBeClosedFirst(b)
	require.NoError(t, <-done)
}

func TestAnAgentThatSendsForEverDoesNotLingerForEver(t *testing.T) {
	b := newBed(t, quickly)
	b.receiver.env.lingering.most = 1 << 20
	a := linger(b, 1)[0]
	sent := 0
	for chunk := make([]byte, 64<<10); ; sent += len(chunk) {
		if _, err := a.data[0].conn.Write(chunk); err != nil {
			break
		}
	}
	assert.GreaterOrEqual(t, sent, 1<<20)
	b.Await("one to linger", func() bool { return b.Counter("lingering") == 1 })
	assert.EqualValues(t, 1, b.Counter("lingering_cut"))
	a.control.close()
	b.Await("the end of all lingering", func() bool { return b.Counter("lingering") == 0 })
}
