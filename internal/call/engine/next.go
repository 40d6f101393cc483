// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// nextComponent calls the next component. The clock knows the begin and end of each call. The context of no call outlives the
// engine.
type nextComponent struct {
	consumer.Traces
	// clock is nil if no hand-over waits for the calls.
	clock *clock
	// begun ends in a shutdown, to leave time for other calls. It ends the calls that have begun, and life ends the others at the
	// end of the time of the shutdown.
	begun, life context.Context
	farewell    *farewell
}

// farewell is what a shutdown and the calls of the next component know of each other.
type farewell struct {
	// hasBegun: calls that begin from now on are left if they do not return in time.
	hasBegun atomic.Bool
	// isDeaf: the next component has not returned in time, and is not called again.
	isDeaf atomic.Bool
}

var errDeaf = errors.New("the next component has not returned from a call whose context has ended")

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
	if n.farewell.hasBegun.Load() {
		return n.consumeInTime(ctx, td)
	}
	return n.Traces.ConsumeTraces(ctx, td)
}

// consumeInTime leaves a call that does not return soon after the end of life. The next component may accept its spans later.
func (n nextComponent) consumeInTime(ctx context.Context, td ptrace.Traces) error {
	if n.farewell.isDeaf.Load() {
		return errDeaf
	}
	var answer error
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		answer = n.Traces.ConsumeTraces(ctx, td)
	}()
	if !EndsInTime(n.life, returned) {
		n.farewell.isDeaf.Store(true)
		return errDeaf
	}
	return answer
}

// Overtime is the time in which a component has to return after the end of its context.
const Overtime = time.Second

// EndsInTime waits until end is closed. It reports false if that does not happen within [Overtime] after ctx is done.
func EndsInTime(ctx context.Context, end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	case <-ctx.Done():
	}
	overtime := time.NewTimer(Overtime)
	defer overtime.Stop()
	select {
	case <-end:
		return true
	case <-overtime.C:
		return false
	}
}
