// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package counters has the own metrics of an Rbkit receiver.
package counters

import (
	"context"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

// Counters are the receiver's own metrics. A message counts once, not each of its events.
type Counters struct {
	*metadata.TelemetryBuilder
}

// New returns the counters of a receiver, with the gauge of its servers' health.
func New(kit *receiverkit.Kit) (*Counters, error) {
	builder, err := metadata.NewTelemetryBuilder(kit.Telemetry)
	if err != nil {
		return nil, err
	}
	if err := builder.RegisterReceiverRbkitServerUpCallback(kit.Health.Observe); err != nil {
		return nil, err
	}
	return &Counters{builder}, nil
}

// Values of attributes.
const (
	// BadParts is a message of more parts than one. The other kinds are problems of package rbkit.
	BadParts = "parts"

	SocketPublish = "publish"
	SocketRequest = "request"

	// ReasonBudget and ReasonServer are the limits for which a server is disconnected.
	ReasonBudget = "memory_budget"
	ReasonServer = "max_server_memory"

	// droppedLimit is a reason beside the reasons of hand-overs.
	droppedLimit = "limit"
)

var background = context.Background()

func (c *Counters) ServersConnected(change int64) { c.ReceiverRbkitServers.Add(background, change) }

func (c *Counters) Disconnected(reason string) {
	c.ReceiverRbkitServersDisconnected.Add(background, 1, receiverkit.With("reason", reason))
}

func (c *Counters) Restarted() { c.ReceiverRbkitRestarts.Add(background, 1) }

func (c *Counters) ConnectionFailed(socket string) {
	c.ReceiverRbkitConnectionFailures.Add(background, 1, receiverkit.With("socket", socket))
}

func (c *Counters) BadMessage(what string) {
	c.ReceiverRbkitBadMessages.Add(background, 1, receiverkit.With("what", what))
}

// Totals are the counts of a process since it began.
type Totals struct {
	Messages, Bytes, Events, Lost, Unknown, Folded, Forgotten int64
	NoStart, NoEnd, StepsBack                                 int64
	Complete, Incomplete, Uncounted, Unchecked                int64
	SamplesDropped, StacksDropped                             int64
}

// CountSince adds the difference of two totals to the receiver's own counters.
func (c *Counters) CountSince(before, now *Totals) {
	receiverkit.Count(c.ReceiverRbkitMessages, now.Messages-before.Messages)
	receiverkit.Count(c.ReceiverRbkitBytes, now.Bytes-before.Bytes)
	receiverkit.Count(c.ReceiverRbkitEvents, now.Events-before.Events)
	receiverkit.Count(c.ReceiverRbkitMessagesLost, now.Lost-before.Lost)
	receiverkit.Count(c.ReceiverRbkitEventsUnknown, now.Unknown-before.Unknown)
	receiverkit.Count(c.ReceiverRbkitFolded, now.Folded-before.Folded)
	receiverkit.Count(c.ReceiverRbkitObjectsForgotten, now.Forgotten-before.Forgotten)
	receiverkit.Count(c.ReceiverRbkitGcUnpaired, now.NoStart-before.NoStart, receiverkit.With("missing", "start"))
	receiverkit.Count(c.ReceiverRbkitGcUnpaired, now.NoEnd-before.NoEnd, receiverkit.With("missing", "end"))
	receiverkit.Count(c.ReceiverRbkitStepsBack, now.StepsBack-before.StepsBack)
	receiverkit.Count(c.ReceiverRbkitDumps, now.Complete-before.Complete, receiverkit.With("objects", "complete"))
	receiverkit.Count(c.ReceiverRbkitDumps, now.Incomplete-before.Incomplete, receiverkit.With("objects", "incomplete"))
	receiverkit.Count(c.ReceiverRbkitDumps, now.Uncounted-before.Uncounted, receiverkit.With("objects", "not_announced"))
	receiverkit.Count(c.ReceiverRbkitDumpsUnchecked, now.Unchecked-before.Unchecked)
	receiverkit.Count(c.ReceiverRbkitSamplesDropped, now.SamplesDropped-before.SamplesDropped, receiverkit.With("reason", droppedLimit))
	receiverkit.Count(c.ReceiverRbkitStacksDropped, now.StacksDropped-before.StacksDropped)
}
