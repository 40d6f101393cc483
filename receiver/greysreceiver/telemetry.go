// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// telemetry counts what the receiver does, for its operator.
type telemetry struct {
	builder *metadata.TelemetryBuilder
}

func newTelemetry(settings component.TelemetrySettings, health *serverhealth.Health) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	if err := builder.RegisterReceiverGreysServerUpCallback(health.Observe); err != nil {
		return nil, err
	}
	return &telemetry{builder: builder}, nil
}

func withAttribute(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

var background = context.Background()

func (t *telemetry) shutdown() { t.builder.Shutdown() }

func (t *telemetry) servers(change int64) { t.builder.ReceiverGreysServers.Add(background, change) }

func (t *telemetry) disconnected(reason string) {
	t.builder.ReceiverGreysServersDisconnected.Add(background, 1, withAttribute("reason", reason))
}

func (t *telemetry) restarted() { t.builder.ReceiverGreysRestarts.Add(background, 1) }

func (t *telemetry) foreignSessions(n int64) {
	t.builder.ReceiverGreysForeignSessions.Add(background, n)
}

func (t *telemetry) foreignReset() { t.builder.ReceiverGreysForeignResets.Add(background, 1) }

func (t *telemetry) connectionFailed() { t.builder.ReceiverGreysConnectionFailures.Add(background, 1) }

func (t *telemetry) commandEnded(how outcome) {
	t.builder.ReceiverGreysCommands.Add(background, 1, withAttribute("outcome", how.String()))
}

// Values of the attribute outcome of resets.
const (
	resetDone   = "done"
	resetFailed = "failed"
)

func (t *telemetry) reset(outcome string) {
	t.builder.ReceiverGreysResets.Add(background, 1, withAttribute("outcome", outcome))
}

// linkCounted is told what is new of a link's counts that processes have no part in.
func (t *telemetry) linkCounted(new linkStats) {
	b := t.builder
	add(b.ReceiverGreysRepliesIgnored, int64(new.repeated), withAttribute("reason", "repeated"))
	add(b.ReceiverGreysRepliesIgnored, int64(new.unasked), withAttribute("reason", "unasked"))
	add(b.ReceiverGreysRepliesIgnored, int64(new.late), withAttribute("reason", "late"))
	add(b.ReceiverGreysConsoleFaults, int64(new.lost), withAttribute("kind", "lost"))
	add(b.ReceiverGreysConsoleFaults, int64(new.unanswered), withAttribute("kind", "unanswered"))
}

// Values of the attribute reason of methods that are left out.
const (
	leftOutRefused = "refused"
	leftOutNoCode  = "no_code"
	leftOutNoRoom  = "no_room"
)

func (t *telemetry) methodsLeftOut(n int, reason string) {
	add(t.builder.ReceiverGreysMethodsLeftOut, int64(n), withAttribute("reason", reason))
}

func (t *telemetry) recordSimple() { t.builder.ReceiverGreysRecordsSimple.Add(background, 1) }

func (t *telemetry) spansDropped(n int, reason string) {
	t.builder.ReceiverGreysSpansDropped.Add(background, int64(n), withAttribute("reason", reason))
}

func (t *telemetry) logRecordsDropped(n int, reason string) {
	t.builder.ReceiverGreysLogRecordsDropped.Add(background, int64(n), withAttribute("reason", reason))
}

func (t *telemetry) metricPointsDropped(n int, reason string) {
	t.builder.ReceiverGreysMetricPointsDropped.Add(background, int64(n), withAttribute("reason", reason))
}

// untimed are replies whose times were left out: rows of monitors are counted without them, and
// call trees and recorded calls are left out.
type untimed struct{ rows, trees, records int64 }

// told is what the counters were told of a process.
type told struct {
	replies, bad, missing                  int64
	folded, otherMonitor                   int64
	unwanted                               int64
	untimed                                untimed
	recordsRepeated, nodesDropped, dropped int64
}

// tell tells the counters what is new of a process, whose lock is held.
func (t *telemetry) tell(p *process) {
	now := told{
		replies: p.replies, bad: p.bad, missing: p.missing,
		folded: p.calls.folded, otherMonitor: p.calls.otherMonitor,
		recordsRepeated: p.records.repeated, nodesDropped: p.nodesDropped, dropped: p.inventory.dropped,
		unwanted: p.unwanted, untimed: p.untimed,
	}
	before := p.told
	p.told = now
	b := t.builder
	add(b.ReceiverGreysReplies, now.replies-before.replies)
	add(b.ReceiverGreysBadReplies, now.bad-before.bad)
	add(b.ReceiverGreysRepliesMissing, now.missing-before.missing)
	add(b.ReceiverGreysFolded, now.folded-before.folded)
	add(b.ReceiverGreysRowsIgnored, now.otherMonitor-before.otherMonitor)
	add(b.ReceiverGreysRepliesIgnored, now.unwanted-before.unwanted, withAttribute("reason", "unwanted"))
	add(b.ReceiverGreysTimesLeftOut, now.untimed.rows-before.untimed.rows, withAttribute("reply", "row"))
	add(b.ReceiverGreysTimesLeftOut, now.untimed.trees-before.untimed.trees, withAttribute("reply", "tree"))
	add(b.ReceiverGreysTimesLeftOut, now.untimed.records-before.untimed.records, withAttribute("reply", "record"))
	add(b.ReceiverGreysRecordsRepeated, now.recordsRepeated-before.recordsRepeated)
	add(b.ReceiverGreysNodesDropped, now.nodesDropped-before.nodesDropped)
	add(b.ReceiverGreysInventoryDropped, now.dropped-before.dropped)
}

func add(counter metric.Int64Counter, n int64, options ...metric.AddOption) {
	if n > 0 {
		counter.Add(background, n, options...)
	}
}
