// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrogagent"
)

// An agent refused in front of start would take its program with it.
func TestAnAgentThatIsTurnedAwayLeavesItsProgramRunning(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxRuns = 1 })
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	a := connect(b, 1)
	r := <-runRestless(ctx, b)
	assert.Equal(t, bytefrogagent.Untraced, r.Outcome, "%s (%v)", r.Reason, r.Err)
	assert.Contains(t, r.Reason, "limits.max_runs is reached (1)")
	assert.Zero(t, r.Configuration.DataConnections)
	a.finish()
	b.awaitRuns(0)
}

func TestAnAgentThatIsReadyIsToldAtOnceThatItIsTurnedAway(t *testing.T) {
	b := newBed(t, quickly, func(b *bed, c *Config) {
		c.Limits.MaxRuns = 1
		b.timing.ready = time.Hour
	})
	a := connect(b, 2)
	p := dial(t, b.address())
	p.version = 2
	p.send(bytefrog.Hello{Version: 2}, bytefrog.Heartbeat{Mode: bytefrog.ModeInitializing},
		bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Shop"})
	p.expectToBeTurnedAway("limits.max_runs is reached (1)")
	a.finish()
	b.awaitRuns(0)
}
