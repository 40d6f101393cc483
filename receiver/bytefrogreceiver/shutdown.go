// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// Shutdown leaves all agents and hands on what is in memory, for at most
// shutdown_timeout; then what is left is dropped and counted. It ends farewellTime
// after that at the latest, whatever agents and the pipeline do.
func (r *bytefrogReceiver) Shutdown(ctx context.Context) error {
	defer r.env.telemetry.shutdown()
	close(r.stopping)
	if r.listener == nil {
		return nil
	}
	_ = r.listener.Close()
	defer r.env.connections.close()
	r.handshakes.hurry(time.Now().Add(r.env.timing.hello))
	for _, run := range r.env.registry.shut() {
		run.leave(shutdown())
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.serving.Wait()
		r.env.registry.allClosed.Wait()
		r.env.lingering.wait()
		r.env.metrics.Close()
		if r.env.logs != nil {
			r.env.logs.Close()
		}
	}()
	beyond := r.env.timing.shutdown
	if !handover.Finish(ctx, over, r.env.config.ShutdownTimeout, beyond, r.cancel) {
		return fmt.Errorf("the shutdown is not over %v after its time for handing on: still open are %s", beyond, r.stillOpen())
	}
	return nil
}

// stillOpen says what a shutdown waits for.
func (r *bytefrogReceiver) stillOpen() string {
	var open []string
	say := func(n int, what string) {
		if n > 0 {
			open = append(open, fmt.Sprintf("%s (%d)", what, n))
		}
	}
	runs, handovers := r.env.registry.list(), 0
	for _, run := range runs {
		if run.handover != nil {
			handovers += run.handover.Calls()
		}
	}
	say(len(runs), "runs")
	say(handovers, "hand-overs of call events that the pipeline has not returned from")
	say(r.slots.Open(), "connections")
	say(r.handshakes.len(), "of those that have not said what they are")
	say(r.env.lingering.len(), "of those that linger")
	if r.env.logs != nil {
		say(r.env.logs.Bytes(), "bytes of log records")
	}
	if len(open) == 0 {
		return "the last metrics"
	}
	return strings.Join(open, ", ")
}
