// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// overtime is how much longer than shutdown_timeout a shutdown may take for what doesn't
// depend on the pipeline.
const overtime = 2 * time.Second

// timeOfAgents is the part of shutdown_timeout, in fifths, in which agents are left as they
// were; log records have the rest.
const timeOfAgents = 4

// Shutdown takes the port from agents, leaves those that are there as they were, and
// hands on what is in memory; what is left at the end of the time is dropped and counted.
func (r *julReceiver) Shutdown(ctx context.Context) error {
	env := r.env
	defer env.telemetry.shutdown()
	env.health.Stop()
	close(env.stopping)
	if r.listener == nil {
		return nil
	}
	over := make(chan struct{})
	// As long as the port is ours, so are the files that have it.
	r.portFiles.release()
	_ = r.listener.Close()
	env.registry.shut(time.Now().Add(env.config.ShutdownTimeout * timeOfAgents / 5))
	go func() {
		defer close(over)
		r.serving.Wait()
		env.metrics.Close()
		if env.logs != nil {
			env.logs.Close()
		}
	}()
	if !handover.Finish(ctx, over, env.config.ShutdownTimeout, overtime, r.cancel) {
		return fmt.Errorf("the pipeline has not returned from a hand-over %v after shutdown_timeout", overtime)
	}
	return nil
}
