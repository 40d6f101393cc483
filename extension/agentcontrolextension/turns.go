// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// turns give an agent one order after the other.
type turns struct {
	waiting *atomic.Int64
	turn    chan struct{}
}

func newTurns() turns { return turns{waiting: &atomic.Int64{}, turn: make(chan struct{}, 1)} }

// take waits for the agent, of which others may have most orders at once. The error is an
// *agentcontrol.Error; without one, give has to be called.
func (t turns) take(ctx context.Context, most int, gone <-chan struct{}) error {
	if t.waiting.Add(1) > int64(most) {
		t.waiting.Add(-1)
		return agentcontrol.Errorf(agentcontrol.Busy, "%d others wait for the agent already (limits.max_waiting)", most)
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-gone:
		t.waiting.Add(-1)
		return agentcontrol.Errorf(agentcontrol.Lost, "the agent is gone; it was not told")
	case <-ctx.Done():
		t.waiting.Add(-1)
		return agentcontrol.Errorf(agentcontrol.NoAnswer, "others had the agent all the time; it was not told: %w", context.Cause(ctx))
	}
}

func (t turns) give() {
	<-t.turn
	t.waiting.Add(-1)
}
