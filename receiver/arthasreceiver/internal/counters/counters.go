// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package counters has the receiver's own metrics, for its operator.
package counters

import (
	"context"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/profiling"
)

// Counters are the receiver's own metrics. They implement [server.Counters]. Several goroutines may use them.
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

// Count changes a count of a link.
func (c *Counters) Count(what link.Count, n int64) {
	b := c.builder
	switch what {
	case link.CountResults:
		receiverkit.Count(b.ReceiverArthasResults, n)
	case link.CountUnbegun:
		receiverkit.Count(b.ReceiverArthasDurationsUnbegun, n)
	case link.CountTreesLeftOut:
		receiverkit.Count(b.ReceiverArthasTreesLeftOut, n)
	case link.CountRecordsKept:
		receiverkit.Count(b.ReceiverArthasRecordsKept, n)
	case link.CountLost:
		receiverkit.Count(b.ReceiverArthasResultsLost, n)
	case link.CountLeftovers:
		receiverkit.Count(b.ReceiverArthasLeftoverSessions, n)
	default:
		receiverkit.Count(b.ReceiverArthasLosses, n, receiverkit.With("kind", losses[what]))
	}
}

// losses are the values of the attribute kind.
var losses = [link.Counts]string{
	link.CountOverflows: "overflow", link.CountFullQueues: "full_queue", link.CountBrokenPages: "broken_page",
	link.CountEvictions: "eviction", link.CountGaps: "gap", link.CountExecOverflows: "exec_overflow",
	link.CountUnhealthy: "unhealthy",
}

// ServersConnected changes the number of connected servers.
func (c *Counters) ServersConnected(change int64) {
	c.builder.ReceiverArthasServers.Add(context.Background(), change)
}

// ConnectionFailed counts a failed or lost connection to a server.
func (c *Counters) ConnectionFailed() {
	receiverkit.Count(c.builder.ReceiverArthasConnectionFailures, 1)
}

// Disconnected counts a server that is disconnected because of its memory, by the reason.
func (c *Counters) Disconnected(reason string) {
	receiverkit.Count(c.builder.ReceiverArthasServersDisconnected, 1, receiverkit.With("reason", reason))
}

// CommandEnded counts the end of a command, by its outcome.
func (c *Counters) CommandEnded(outcome string) {
	receiverkit.Count(c.builder.ReceiverArthasCommands, 1, receiverkit.With("outcome", outcome))
}

// Reset counts a reset, by its result.
func (c *Counters) Reset(err error) {
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	receiverkit.Count(c.builder.ReceiverArthasResets, 1, receiverkit.With("outcome", outcome))
}

// The API of Arthas has no replies that belong to no command, numbers no sessions, needs one command for a pattern, and
// sends recorded calls with their details. So the following methods are never called with something to count.

// Link counts counts of a link that belong to no process.
func (c *Counters) Link(session.Stats) {}

// ForeignSessions counts sessions of other clients.
func (c *Counters) ForeignSessions(int64) {}

// ForeignReset counts a suspected reset by another client.
func (c *Counters) ForeignReset() {}

// MethodsLeftOut counts methods of a pattern that are not watched.
func (c *Counters) MethodsLeftOut(int, string) {}

// RecordWithoutDetail counts a recorded call without its detail.
func (c *Counters) RecordWithoutDetail() {}

// Process counts the difference of two counts of a process.
func (c *Counters) Process(now, before *process.Counts) {
	receiverkit.Count(c.builder.ReceiverArthasResultsMalformed, now.Bad-before.Bad)
	receiverkit.Count(c.builder.ReceiverArthasFolded, now.Folded-before.Folded)
	receiverkit.Count(c.builder.ReceiverArthasRowsIgnored, now.OtherMonitor-before.OtherMonitor)
	receiverkit.Count(c.builder.ReceiverArthasNodesDropped, now.NodesDropped-before.NodesDropped)
}

// Period counts a period of the profiler.
func (c *Counters) Period(outcome profiling.Outcome) {
	receiverkit.Count(c.builder.ReceiverArthasProfilePeriods, 1, receiverkit.With("outcome", outcome.String()))
}

// ProfileLosses counts parts of a profile that are lost.
func (c *Counters) ProfileLosses(droppedBytes, malformedLines, foldedStacks int64) {
	receiverkit.Count(c.builder.ReceiverArthasProfileBytesDropped, droppedBytes)
	receiverkit.Count(c.builder.ReceiverArthasProfileLinesMalformed, malformedLines)
	receiverkit.Count(c.builder.ReceiverArthasProfileStacksFolded, foldedStacks)
}

// Restarted counts a program that was started again.
func (c *Counters) Restarted() { c.builder.ReceiverArthasRestarts.Add(context.Background(), 1) }

// SpansDropped, LogRecordsDropped, MetricPointsDropped and SamplesDropped count dropped data, by the reason.
func (c *Counters) SpansDropped(n int, reason string) {
	receiverkit.CountBy(c.builder.ReceiverArthasSpansDropped)(n, reason)
}

func (c *Counters) LogRecordsDropped(n int, reason string) {
	receiverkit.CountBy(c.builder.ReceiverArthasLogRecordsDropped)(n, reason)
}

func (c *Counters) MetricPointsDropped(n int, reason string) {
	receiverkit.CountBy(c.builder.ReceiverArthasMetricPointsDropped)(n, reason)
}

func (c *Counters) SamplesDropped(n int, reason string) {
	receiverkit.CountBy(c.builder.ReceiverArthasSamplesDropped)(n, reason)
}
