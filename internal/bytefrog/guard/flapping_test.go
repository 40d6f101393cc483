// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/testkit"
)

// A collector that takes agents, and loses them at once, doesn't keep them from the next.
func TestACollectorThatClosesDoesntHideTheNext(t *testing.T) {
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

func TestACollectorThatClosesIsNoneThatWasThere(t *testing.T) {
	b := newBed(t, []string{fake(t, starting(t, 2))}, func(g *Guard) { g.options.GiveUp = 300 * time.Millisecond })
	_, results := b.start(t.Context(), &counting{slow: true})
	result := ended(t, results)
	assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	assert.Contains(t, result.Reason, "could reach no collector")
}

// A collector that doesn't answer leaves time for the next, however many there are.
func TestCollectorsThatDontAnswerDontHideTheNext(t *testing.T) {
	// These take connections, and are silent.
	silent := []string{play(t, nil).address, play(t, nil).address}
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, append(silent, c.address), func(g *Guard) { g.options.ConnectTimeout, g.options.StartTimeout = patience, 6*time.Second })
	_, results := b.start(t.Context(), &counting{until: 100})
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
		"it was lost at once":              {stayed: time.Second, tooSoon: true, from: 3, absent: 0},
		"after as long as agents may wait": {stayed: giveUp, tooSoon: true, from: 3, absent: giveUp},
		"after long":                       {stayed: steady, from: -1, absent: steady},
	} {
		t.Run(name, func(t *testing.T) {
			g := &environment{timing: timing{steady: steady}, options: Options{GiveUp: giveUp}}
			k := &keeper{session: &session{env: g}, retry: backoff.New(backoff.Config{}), linked: begin, absent: begin, from: -1}
			lost := begin.Add(c.stayed)
			k.judge(&link{index: 2}, lost)
			assert.Equal(t, c.tooSoon, k.tooSoon)
			assert.Equal(t, c.from, k.from)
			assert.Equal(t, c.absent, k.absent.Sub(begin))
			assert.Equal(t, lost, k.lostAt)
		})
	}
}
