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
	// begun ends in a shutdown, to leave time for other calls. It ends the calls that have begun, and life ends the others at the
	// end of the time of the shutdown.
	begun, life context.Context
}

func (n nextComponent) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	life := n.begun
	if life.Err() != nil {
		life = n.life
	}
	defer context.AfterFunc(life, cancel)()
	if n.clock != nil {
		defer n.clock.end(n.clock.begin())
	}
	return n.Traces.ConsumeTraces(ctx, td)
}
