// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// turns let an agent carry out one order after the other.
type turns struct {
	waiting *atomic.Int64
	turn    chan struct{}
}

func newTurns() turns { return turns{waiting: &atomic.Int64{}, turn: make(chan struct{}, 1)} }

// queue bounds the orders that wait for busy agents. The first order of each agent needs no place
// there, so silent agents do not delay orders for others.
type queue struct {
	// most is the largest number of orders for one agent.
	most   int
	places chan struct{}
}

// begin waits for the agent's turn. The error is an *agentcontrol.Error. Without an error the
// caller calls end.
func (t turns) begin(ctx context.Context, q queue, gone <-chan struct{}) error {
	others := t.waiting.Add(1) - 1
	if err := t.await(ctx, q, others, gone); err != nil {
		t.waiting.Add(-1)
		return err
	}
	// select chooses any ready case.
	if ctx.Err() != nil {
		t.end()
		return notSent(ctx)
	}
	return nil
}

// await waits until the agent is free. others is the number of other orders for the agent.
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
		return notSent(ctx)
	}
}

func notSent(ctx context.Context) error {
	return agentcontrol.Errorf(agentcontrol.NoAnswer, "the agent was busy with other commands; this command was not sent: %w", context.Cause(ctx))
}

func (t turns) end() {
	<-t.turn
	t.waiting.Add(-1)
}
