// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

// telemetry has the receiver's own counters. They are counted once for a message, not for
// each event.
type telemetry struct {
	builder *metadata.TelemetryBuilder
}

func newTelemetry(kit *receiverkit.Kit) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(kit.Telemetry)
	if err != nil {
		return nil, err
	}
	if err := builder.RegisterReceiverRbkitServerUpCallback(kit.Health.Observe); err != nil {
		return nil, err
	}
	return &telemetry{builder: builder}, nil
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

func (t *telemetry) servers(change int64) { t.builder.ReceiverRbkitServers.Add(background, change) }

func (t *telemetry) disconnected(reason string) {
	t.builder.ReceiverRbkitServersDisconnected.Add(background, 1, receiverkit.With("reason", reason))
}

func (t *telemetry) restarted() { t.builder.ReceiverRbkitRestarts.Add(background, 1) }

func (t *telemetry) connectionFailed(socket string) {
	t.builder.ReceiverRbkitConnectionFailures.Add(background, 1, receiverkit.With("socket", socket))
}

func (t *telemetry) badMessage(what string) {
	t.builder.ReceiverRbkitBadMessages.Add(background, 1, receiverkit.With("what", what))
}

// totals are the counts of a process since its begin.
type totals struct {
	messages, bytes, events, lost, unknown, folded, forgotten int64
	noStart, noEnd, stepsBack                                 int64
	complete, incomplete, uncounted, unchecked                int64
	samplesDropped, stacksDropped                             int64
}

// countSince adds the difference of two totals to the receiver's own counters.
func (t *telemetry) countSince(before, now *totals) {
	b := t.builder
	receiverkit.Count(b.ReceiverRbkitMessages, now.messages-before.messages)
	receiverkit.Count(b.ReceiverRbkitBytes, now.bytes-before.bytes)
	receiverkit.Count(b.ReceiverRbkitEvents, now.events-before.events)
	receiverkit.Count(b.ReceiverRbkitMessagesLost, now.lost-before.lost)
	receiverkit.Count(b.ReceiverRbkitEventsUnknown, now.unknown-before.unknown)
	receiverkit.Count(b.ReceiverRbkitFolded, now.folded-before.folded)
	receiverkit.Count(b.ReceiverRbkitObjectsForgotten, now.forgotten-before.forgotten)
	receiverkit.Count(b.ReceiverRbkitGcUnpaired, now.noStart-before.noStart, receiverkit.With("missing", "start"))
	receiverkit.Count(b.ReceiverRbkitGcUnpaired, now.noEnd-before.noEnd, receiverkit.With("missing", "end"))
	receiverkit.Count(b.ReceiverRbkitStepsBack, now.stepsBack-before.stepsBack)
	receiverkit.Count(b.ReceiverRbkitDumps, now.complete-before.complete, receiverkit.With("objects", "complete"))
	receiverkit.Count(b.ReceiverRbkitDumps, now.incomplete-before.incomplete, receiverkit.With("objects", "incomplete"))
	receiverkit.Count(b.ReceiverRbkitDumps, now.uncounted-before.uncounted, receiverkit.With("objects", "not_announced"))
	receiverkit.Count(b.ReceiverRbkitDumpsUnchecked, now.unchecked-before.unchecked)
	receiverkit.Count(b.ReceiverRbkitSamplesDropped, now.samplesDropped-before.samplesDropped, receiverkit.With("reason", droppedLimit))
	receiverkit.Count(b.ReceiverRbkitStacksDropped, now.stacksDropped-before.stacksDropped)
}
