// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

// telemetry counts what the receiver does, for its operator. Nothing in it is called for
// each event.
type telemetry struct {
	builder *metadata.TelemetryBuilder
}

func newTelemetry(settings component.TelemetrySettings, health *serverhealth.Health) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	if err := builder.RegisterReceiverRbkitServerUpCallback(health.Observe); err != nil {
		return nil, err
	}
	return &telemetry{builder: builder}, nil
}

func withAttribute(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// Values of attributes.
const (
	// badParts: a message of more parts than one, beside the problems of package rbkit.
	badParts = "parts"

	socketPublish = "publish"
	socketRequest = "request"

	// droppedLimit is a reason beside those of hand-overs.
	droppedLimit = "limit"
)

var background = context.Background()

func (t *telemetry) shutdown() { t.builder.Shutdown() }

func (t *telemetry) servers(change int64) { t.builder.ReceiverRbkitServers.Add(background, change) }

func (t *telemetry) disconnected(reason string) {
	t.builder.ReceiverRbkitServersDisconnected.Add(background, 1, withAttribute("reason", reason))
}

func (t *telemetry) restarted() { t.builder.ReceiverRbkitRestarts.Add(background, 1) }

func (t *telemetry) connectionFailed(socket string) {
	t.builder.ReceiverRbkitConnectionFailures.Add(background, 1, withAttribute("socket", socket))
}

func (t *telemetry) badMessage(what string) {
	t.builder.ReceiverRbkitBadMessages.Add(background, 1, withAttribute("what", what))
}

func (t *telemetry) spansDropped(n int, reason string) {
	t.builder.ReceiverRbkitSpansDropped.Add(background, int64(n), withAttribute("reason", reason))
}

func (t *telemetry) logRecordsDropped(n int, reason string) {
	t.builder.ReceiverRbkitLogRecordsDropped.Add(background, int64(n), withAttribute("reason", reason))
}

func (t *telemetry) samplesDropped(n int, reason string) {
	t.builder.ReceiverRbkitSamplesDropped.Add(background, int64(n), withAttribute("reason", reason))
}

func (t *telemetry) metricPointsDropped(n int, reason string) {
	t.builder.ReceiverRbkitMetricPointsDropped.Add(background, int64(n), withAttribute("reason", reason))
}

// said is what the counters were told of a process.
type said struct {
	messages, bytes, events, lost, unknown, folded, forgotten int64
	noStart, noEnd, stepsBack                                 int64
	complete, incomplete, uncounted, unchecked                int64
	samplesDropped, stacksDropped                             int64
}

// tell tells the counters what is new of a process, once for a message.
func (t *telemetry) tell(p *process) {
	now := said{
		messages: p.messages, bytes: p.bytes, events: p.events, lost: p.lost, unknown: p.unknown,
		folded:    p.classes.folded + p.allocations.files.folded + p.allocations.folded,
		forgotten: p.objects.tracked.forgotten,
		noStart:   p.cycles.noStart, noEnd: p.cycles.noEnd, stepsBack: p.cycles.stepsBack,
		complete: p.dumps.complete, incomplete: p.dumps.incomplete, uncounted: p.dumps.uncounted, unchecked: p.dumps.unchecked,
		samplesDropped: p.samples.deep + p.snapshots.dropped, stacksDropped: p.snapshots.deep + p.snapshots.crowded,
	}
	before := p.said
	p.said = now
	b := t.builder
	add(b.ReceiverRbkitMessages, now.messages-before.messages)
	add(b.ReceiverRbkitBytes, now.bytes-before.bytes)
	add(b.ReceiverRbkitEvents, now.events-before.events)
	add(b.ReceiverRbkitMessagesLost, now.lost-before.lost)
	add(b.ReceiverRbkitEventsUnknown, now.unknown-before.unknown)
	add(b.ReceiverRbkitFolded, now.folded-before.folded)
	add(b.ReceiverRbkitObjectsForgotten, now.forgotten-before.forgotten)
	add(b.ReceiverRbkitGcUnpaired, now.noStart-before.noStart, withAttribute("missing", "start"))
	add(b.ReceiverRbkitGcUnpaired, now.noEnd-before.noEnd, withAttribute("missing", "end"))
	add(b.ReceiverRbkitStepsBack, now.stepsBack-before.stepsBack)
	add(b.ReceiverRbkitDumps, now.complete-before.complete, withAttribute("objects", "complete"))
	add(b.ReceiverRbkitDumps, now.incomplete-before.incomplete, withAttribute("objects", "incomplete"))
	add(b.ReceiverRbkitDumps, now.uncounted-before.uncounted, withAttribute("objects", "not_announced"))
	add(b.ReceiverRbkitDumpsUnchecked, now.unchecked-before.unchecked)
	add(b.ReceiverRbkitSamplesDropped, now.samplesDropped-before.samplesDropped, withAttribute("reason", droppedLimit))
	add(b.ReceiverRbkitStacksDropped, now.stacksDropped-before.stacksDropped)
}

func add(counter metric.Int64Counter, n int64, options ...metric.AddOption) {
	if n > 0 {
		counter.Add(background, n, options...)
	}
}
