// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package counters has the receiver's own metrics, for its operator.
package counters

import (
	"context"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/session"
)

// Counters are the receiver's own metrics. Several goroutines may use them.
type Counters struct{ builder *metadata.TelemetryBuilder }

// New registers the metrics, with the gauge of servers that are up.
func New(settings component.TelemetrySettings, health *serverhealth.Health) (*Counters, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	return &Counters{builder: builder}, builder.RegisterReceiverArthasServerUpCallback(health.Observe)
}

// Shutdown unregisters the gauge.
func (c *Counters) Shutdown() { c.builder.Shutdown() }

// Count changes a count of a server.
func (c *Counters) Count(what session.Count, n int64) {
	b := c.builder
	switch what {
	case session.CountFailed:
		receiverkit.Count(b.ReceiverArthasConnectionFailures, n)
	case session.CountResults:
		receiverkit.Count(b.ReceiverArthasResults, n)
	case session.CountMalformed:
		receiverkit.Count(b.ReceiverArthasResultsMalformed, n)
	case session.CountUnbegun:
		receiverkit.Count(b.ReceiverArthasDurationsUnbegun, n)
	case session.CountLost:
		receiverkit.Count(b.ReceiverArthasResultsLost, n)
	case session.CountRestarted:
		receiverkit.Count(b.ReceiverArthasCommandsRestarted, n)
	case session.CountLeftovers:
		receiverkit.Count(b.ReceiverArthasLeftoverSessions, n)
	case session.CountResets:
		receiverkit.Count(b.ReceiverArthasResets, n, receiverkit.With("outcome", "done"))
	case session.CountFailedResets:
		receiverkit.Count(b.ReceiverArthasResets, n, receiverkit.With("outcome", "failed"))
	default:
		receiverkit.Count(b.ReceiverArthasLosses, n, receiverkit.With("kind", losses[what]))
	}
}

// losses are the values of the attribute kind.
var losses = [session.Counts]string{
	session.CountOverflows: "overflow", session.CountFullQueues: "full_queue", session.CountBrokenPages: "broken_page",
	session.CountEvictions: "eviction", session.CountGaps: "gap", session.CountExecOverflows: "exec_overflow",
	session.CountUnhealthy: "unhealthy",
}

// Process counts the difference of two counts of a process.
func (c *Counters) Process(now, before *process.Counts) {
	receiverkit.Count(c.builder.ReceiverArthasFolded, now.Folded-before.Folded)
	receiverkit.Count(c.builder.ReceiverArthasRowsIgnored, now.OtherMonitor-before.OtherMonitor)
	receiverkit.Count(c.builder.ReceiverArthasNodesDropped, now.NodesDropped-before.NodesDropped)
}

// Restarted counts a program that was started again.
func (c *Counters) Restarted() { c.builder.ReceiverArthasRestarts.Add(context.Background(), 1) }

// TreeLeftOut counts a call tree without a duration.
func (c *Counters) TreeLeftOut() { c.builder.ReceiverArthasTreesLeftOut.Add(context.Background(), 1) }

// SpansDropped, LogRecordsDropped and MetricPointsDropped count dropped data, by the reason.
func (c *Counters) SpansDropped(n int, reason string) {
	receiverkit.CountBy(c.builder.ReceiverArthasSpansDropped)(n, reason)
}

func (c *Counters) LogRecordsDropped(n int, reason string) {
	receiverkit.CountBy(c.builder.ReceiverArthasLogRecordsDropped)(n, reason)
}

func (c *Counters) MetricPointsDropped(n int, reason string) {
	receiverkit.CountBy(c.builder.ReceiverArthasMetricPointsDropped)(n, reason)
}
