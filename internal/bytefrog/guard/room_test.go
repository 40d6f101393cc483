// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
)

func TestTheRoomForWaitingData(t *testing.T) {
	r := room{queue: 100, rise: 1000}
	for _, step := range []struct {
		what     string
		do       func()
		may, not int64
	}{
		{"the queue", func() {}, 100, 101},
		{"the collector reads some", func() { r.shrink(800, 100) }, 100, 101},
		{"the program has waited", func() { r.grow(150) }, 1150, 1151},
		{"and again", func() { r.grow(1151) }, 2151, 2152},
		{"the collector reads some of that", func() { r.shrink(800, 1900) }, 1751, 1752},
		{"it reads more than arrives", func() { r.shrink(1400, 50) }, 1050, 1051},
		{"it reads nearly all", func() { r.shrink(950*recession, 50) }, 100, 101},
		{"it reads more than waits", func() { r.shrink(1<<40, 1) }, 100, 101},
		{"the program has waited again", func() { r.grow(150) }, 1150, 1151},
		{"it has read all", func() { r.shrink(150, 0) }, 100, 101},
	} {
		step.do()
		assert.True(t, r.isLeft(step.may), step.what)
		assert.False(t, r.isLeft(step.not), step.what)
	}
}

func TestTheAllowedTimeWithoutReading(t *testing.T) {
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	a := newAllowance(100 * time.Millisecond)
	assert.Equal(t, 100*time.Millisecond, a.have(at(0)))
	a.spend(at(0), at(60))
	assert.Equal(t, 40*time.Millisecond, a.have(at(60)), "a wait as long as it may be brings nothing")
	assert.Equal(t, 80*time.Millisecond, a.have(at(460)))
	assert.Equal(t, 100*time.Millisecond, a.have(at(10_000)), "no more than for a second is kept")
	a.spend(at(10_000), at(10_500))
	assert.Zero(t, a.have(at(10_500)))
	assert.Equal(t, 100*time.Millisecond, a.have(at(11_500)))

	never, always := newAllowance(0), newAllowance(time.Second)
	assert.Zero(t, never.have(at(0)))
	assert.Zero(t, never.have(at(10_000)))
	always.spend(at(0), at(10_000))
	assert.Equal(t, time.Duration(math.MaxInt64), always.have(at(10_000)))
}

// throttled runs a collector that reads a few bytes every few milliseconds. It ends with the test, or reads all data on
// demand.
func throttled(t *testing.T, all <-chan struct{}) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*net.TCPConn).SetReadBuffer(chunkBytes)
			serving.Go(func() { takeSlowly(t, conn, all) })
		}
	})
	return listener.Addr().String()
}

func takeSlowly(t *testing.T, conn net.Conn, all <-chan struct{}) {
	defer conn.Close()
	hello := make([]byte, 2)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return
	}
	answer := bytefrog.DataHelloReply{}.AppendTo(nil)
	if hello[0] == byte(bytefrog.TypeHello) {
		answer = starting(t, 1)
	}
	_, _ = conn.Write(answer)
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := io.CopyN(io.Discard, conn, 8*kib); err != nil {
			return
		}
		select {
		case <-all:
			_, _ = io.Copy(io.Discard, conn)
			return
		case <-ticker.C:
		}
	}
}

// A slow collector slows the program for the allowed time. Then the guard reads on, until the agent has to be
// suspended.
func TestASlowCollectorSlowsTheProgramOnlyForTheAllowedTime(t *testing.T) {
	all := make(chan struct{})
	b := newBed(t, []string{throttled(t, all)}, func(g *Guard) {
		g.options.Queue, g.options.Memory = chunkBytes, 32*mib
		g.options.MaxWait, g.options.MaxWaitPerSecond = patience, 10*time.Millisecond
	})
	p := &counting{}
	a, results := b.start(t.Context(), p)
	b.await("the agent to be suspended", func() bool { return b.guard.counts.Stalls.Load() > 0 })
	close(all)
	a.Stop()
	result := ended(t, results)
	assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	assert.Zero(t, b.guard.counts.Losses.Load())
}
