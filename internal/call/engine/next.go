// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// nextComponent calls the next component. The clock knows the begin and end of each call, and
// no call outlives the engine.
type nextComponent struct {
	consumer.Traces
	// clock is nil if no hand-over waits for the calls.
	clock *clock
	// life ends when the time of the shutdown is over.
	life context.Context
}

func (n nextComponent) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.life, cancel)()
	if n.clock != nil {
		defer n.clock.end(n.clock.begin())
	}
	return n.Traces.ConsumeTraces(ctx, td)
}
