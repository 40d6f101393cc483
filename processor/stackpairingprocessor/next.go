// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// nextComponent is the next component as the processor calls it: the clock is
// told how long calls take, and no call outlives the processor, however long
// its caller would wait.
type nextComponent struct {
	consumer.Traces
	clock *clock
	// life ends when the time of the shutdown is over.
	life context.Context
}

func (n nextComponent) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.life, cancel)()
	defer n.clock.end(n.clock.begin())
	return n.Traces.ConsumeTraces(ctx, td)
}
