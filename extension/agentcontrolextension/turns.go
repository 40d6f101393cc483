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

// queue is where orders wait for agents that others have. The first of each agent needs no
// place there: so agents that don't answer hold no other agent up.
type queue struct {
	// most is how many orders an agent may have at once.
	most   int
	places chan struct{}
}

// take waits for the agent. The error is an *agentcontrol.Error; without one, give has to
// be called.
func (t turns) take(ctx context.Context, q queue, gone <-chan struct{}) error {
	others := t.waiting.Add(1) - 1
	if err := t.await(ctx, q, others, gone); err != nil {
		t.waiting.Add(-1)
		return err
	}
	// Of several that can be, any is chosen.
	if ctx.Err() != nil {
		t.give()
		return notTold(ctx)
	}
	return nil
}

// await has the agent, of which so many others have orders, when there is no error.
func (t turns) await(ctx context.Context, q queue, others int64, gone <-chan struct{}) error {
	if others >= int64(q.most) {
		return agentcontrol.Errorf(agentcontrol.Busy, "%d other commands already wait for the agent (limits.max_waiting)", others)
	}
	if others > 0 {
		select {
		case q.places <- struct{}{}:
			defer func() { <-q.places }()
		default:
			return agentcontrol.Errorf(agentcontrol.Busy, "%d commands already wait for busy agents (limits.max_requests)", cap(q.places))
		}
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-gone:
		return agentcontrol.Errorf(agentcontrol.Lost, "the agent disconnected before the command was sent")
	case <-ctx.Done():
		return notTold(ctx)
	}
}

func notTold(ctx context.Context) error {
	return agentcontrol.Errorf(agentcontrol.NoAnswer, "the agent was busy with other commands; this command was not sent: %w", context.Cause(ctx))
}

func (t turns) give() {
	<-t.turn
	t.waiting.Add(-1)
}
