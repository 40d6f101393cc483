// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package counters has the receiver's own metrics, for its operator.
package counters

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// Counters are the receiver's own metrics. They implement [server.Counters]. Several goroutines may use them.
type Counters struct {
	builder *metadata.TelemetryBuilder
}

// New registers the metrics, with the gauge of servers that are up.
func New(settings component.TelemetrySettings, health *serverhealth.Health) (*Counters, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	if err := builder.RegisterReceiverGreysServerUpCallback(health.Observe); err != nil {
		return nil, err
	}
	return &Counters{builder: builder}, nil
}

var background = context.Background()

// increase adds to a counter, with an attribute where key is not empty.
func increase(counter metric.Int64Counter, n int64, key, value string) {
	switch {
	case n <= 0:
	case key == "":
		counter.Add(background, n)
	default:
		counter.Add(background, n, metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value))))
	}
}

// Shutdown unregisters the gauge.
func (c *Counters) Shutdown() { c.builder.Shutdown() }

// ServersConnected changes the number of connected servers.
func (c *Counters) ServersConnected(change int64) {
	c.builder.ReceiverGreysServers.Add(background, change)
}

// ConnectionFailed counts a failed or lost connection to a server.
func (c *Counters) ConnectionFailed() {
	increase(c.builder.ReceiverGreysConnectionFailures, 1, "", "")
}

// Disconnected counts a server that is disconnected, by its reason.
func (c *Counters) Disconnected(reason string) {
	increase(c.builder.ReceiverGreysServersDisconnected, 1, "reason", reason)
}

// Restarted counts a server whose identity shows another process.
func (c *Counters) Restarted() { increase(c.builder.ReceiverGreysRestarts, 1, "", "") }

// ForeignSessions counts sessions of other clients.
func (c *Counters) ForeignSessions(n int64) {
	increase(c.builder.ReceiverGreysForeignSessions, n, "", "")
}

// ForeignReset counts a suspected reset by another client.
func (c *Counters) ForeignReset() { increase(c.builder.ReceiverGreysForeignResets, 1, "", "") }

// CommandEnded counts the end of a command, by its outcome.
func (c *Counters) CommandEnded(outcome string) {
	increase(c.builder.ReceiverGreysCommands, 1, "outcome", outcome)
}

// Reset counts a reset, by its result.
func (c *Counters) Reset(err error) {
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	increase(c.builder.ReceiverGreysResets, 1, "outcome", outcome)
}

// Link counts those counts of a link that belong to no process.
func (c *Counters) Link(since session.Stats) {
	b := c.builder
	increase(b.ReceiverGreysRepliesIgnored, int64(since.Repeated), "reason", "repeated")
	increase(b.ReceiverGreysRepliesIgnored, int64(since.Unasked), "reason", "unasked")
	increase(b.ReceiverGreysRepliesIgnored, int64(since.Late), "reason", "late")
	increase(b.ReceiverGreysConsoleFaults, int64(since.Lost), "kind", "lost")
	increase(b.ReceiverGreysConsoleFaults, int64(since.Unanswered), "kind", "unanswered")
}

// MethodsLeftOut counts methods of a pattern that are not watched, by the reason.
func (c *Counters) MethodsLeftOut(n int, reason string) {
	increase(c.builder.ReceiverGreysMethodsLeftOut, int64(n), "reason", reason)
}

// RecordWithoutDetail counts a recorded call that is forwarded without its detail.
func (c *Counters) RecordWithoutDetail() {
	increase(c.builder.ReceiverGreysRecordsSimple, 1, "", "")
}

// SpansDropped, LogRecordsDropped and MetricPointsDropped count dropped data, by the reason.
func (c *Counters) SpansDropped(n int, reason string) {
	increase(c.builder.ReceiverGreysSpansDropped, int64(n), "reason", reason)
}

func (c *Counters) LogRecordsDropped(n int, reason string) {
	increase(c.builder.ReceiverGreysLogRecordsDropped, int64(n), "reason", reason)
}

func (c *Counters) MetricPointsDropped(n int, reason string) {
	increase(c.builder.ReceiverGreysMetricPointsDropped, int64(n), "reason", reason)
}

// Process counts the difference of two counts of a process.
func (c *Counters) Process(now, before *process.Counts) {
	b := c.builder
	increase(b.ReceiverGreysReplies, now.Replies-before.Replies, "", "")
	increase(b.ReceiverGreysBadReplies, now.Bad-before.Bad, "", "")
	increase(b.ReceiverGreysRepliesMissing, now.Missing-before.Missing, "", "")
	increase(b.ReceiverGreysFolded, now.Folded-before.Folded, "", "")
	increase(b.ReceiverGreysRowsIgnored, now.OtherMonitor-before.OtherMonitor, "", "")
	increase(b.ReceiverGreysRepliesIgnored, now.Unwanted-before.Unwanted, "reason", "unwanted")
	increase(b.ReceiverGreysTimesLeftOut, now.Untimed.Rows-before.Untimed.Rows, "reply", "row")
	increase(b.ReceiverGreysTimesLeftOut, now.Untimed.Trees-before.Untimed.Trees, "reply", "tree")
	increase(b.ReceiverGreysTimesLeftOut, now.Untimed.Records-before.Untimed.Records, "reply", "record")
	increase(b.ReceiverGreysRecordsRepeated, now.Repeated-before.Repeated, "", "")
	increase(b.ReceiverGreysNodesDropped, now.NodesDropped-before.NodesDropped, "", "")
	increase(b.ReceiverGreysInventoryDropped, now.InventoryDropped-before.InventoryDropped, "", "")
}
