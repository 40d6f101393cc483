// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/testkit"
)

// A collector that accepts agents, and loses them immediately, does not keep them from the next one.
func TestACollectorThatClosesDoesNotHideTheNext(t *testing.T) {
	for name, answer := range map[string][]byte{
		"it closes":     starting(t, 2),
		"it says error": bytefrog.ErrorMessage{Text: "no"}.AppendTo(starting(t, 2)),
	} {
		t.Run(name, func(t *testing.T) {
			good := newCollector(t, testkit.Address(t))
			b := newBed(t, []string{fake(t, answer), good.address})
			a, results := b.start(t.Context(), &counting{slow: true})
			b.await("events at the good one", func() bool { return good.number() > 0 })
			a.Stop()
			result := ended(t, results)
			assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
		})
	}
}

func TestACollectorThatClosesSoonCountsAsAbsent(t *testing.T) {
	t.Parallel()
	b := newBed(t, []string{fake(t, starting(t, 2))}, func(g *Guard) { g.options.GiveUp = 300 * time.Millisecond })
	_, results := b.start(t.Context(), &counting{slow: true})
	result := ended(t, results)
	assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	assert.Contains(t, result.Reason, "could reach no collector")
}

// A collector that accepts connections and does not answer is given up after ConnectTimeout.
// StartTimeout leaves time for many tries: on a busy machine the good collector is slow, too.
func TestCollectorsWithoutAnAnswerDoNotHideTheNext(t *testing.T) {
	t.Parallel()
	silent := []string{play(t, nil).address, play(t, nil).address}
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, append(silent, c.address), func(g *Guard) { g.options.ConnectTimeout, g.options.StartTimeout = 500*time.Millisecond, patience })
	_, results := b.start(t.Context(), &counting{until: 100})
	result := ended(t, results)
	assert.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
}

// If ConnectTimeout is longer than StartTimeout, each collector has an equal share of the remaining time.
func TestCollectorsShareTheStartTimeout(t *testing.T) {
	silent := []*playedCollector{play(t, nil), play(t, nil)}
	c := newCollector(t, testkit.Address(t))
	type try struct {
		address string
		share   time.Duration
	}
	tries := make(chan try, 100)
	b := newBed(t, []string{silent[0].address, silent[1].address, c.address}, func(g *Guard) {
		g.options.ConnectTimeout, g.options.StartTimeout = time.Hour, patience
		dial := g.dial
		g.dial = func(ctx context.Context, address string) (net.Conn, error) {
			until, _ := ctx.Deadline()
			tries <- try{address, time.Until(until)}
			return dial(ctx, address)
		}
	})
	_, results := b.start(t.Context(), &counting{until: 100})
	for i, s := range silent {
		<-s.greeted
		b.network.cut()
		of := <-tries
		assert.Equal(t, s.address, of.address)
		assert.LessOrEqual(t, of.share, patience/time.Duration(len(silent)+1-i))
	}
	assert.Equal(t, c.address, (<-tries).address)
	result := ended(t, results)
	assert.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
}

func TestALossDecidesWhenAndWhereTheNextTryIs(t *testing.T) {
	const steady, giveUp = time.Minute, 10 * time.Second
	begin := time.Now()
	for name, c := range map[string]struct {
		stayed  time.Duration
		tooSoon bool
		from    int
		absent  time.Duration // since begin; the loss before was at 0
	}{
		"it was lost early":                {stayed: time.Second, tooSoon: true, from: 3, absent: 0},
		"after as long as agents may wait": {stayed: giveUp, tooSoon: true, from: 3, absent: giveUp},
		"after long":                       {stayed: steady, from: -1, absent: steady},
	} {
		t.Run(name, func(t *testing.T) {
			g := &environment{timing: timing{steady: steady}, options: Options{GiveUp: giveUp}}
			k := &keeper{session: &session{env: g}, retry: backoff.New(backoff.Config{}), linked: begin, absent: begin, from: -1}
			lost := begin.Add(c.stayed)
			k.noteLoss(&link{index: 2}, lost)
			assert.Equal(t, c.tooSoon, k.tooSoon)
			assert.Equal(t, c.from, k.from)
			assert.Equal(t, c.absent, k.absent.Sub(begin))
			assert.Equal(t, lost, k.lostAt)
		})
	}
}
