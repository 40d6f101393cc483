// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

// Instruments are the own metrics of a receiver that [Counters] needs. Telemetry has their meanings.
type Instruments struct {
	Sessions, Streams, CallStreams metric.Int64UpDownCounter

	SessionsDetached, StreamsCut, Cleared, ConnectionFailures, BadData            metric.Int64Counter
	Packets, PacketsLost, Bytes, Events, EventsLate, EventsDiscarded              metric.Int64Counter
	CallEvents, CallEventsDropped, CallValuesCut, Breaks, Batches, BatchesDropped metric.Int64Counter
	NamesForgotten, NamesUnknown, LinesUnknown, ObjectsRefused, FilesRefused      metric.Int64Counter
	HandoverRetries, LogRecordsDropped, LogValuesLeftOut, MetricPointsDropped     metric.Int64Counter
}

// Counters counts with the instruments of a receiver. Any goroutine may use it.
type Counters struct {
	of     Instruments
	causes [callevent.CauseCount]metric.MeasurementOption
}

// NewCounters returns the Telemetry of a receiver with these instruments.
func NewCounters(of Instruments) *Counters {
	c := &Counters{of: of}
	for cause := range c.causes {
		c.causes[cause] = receiverkit.With("cause", callevent.Cause(cause).String())
	}
	return c
}

var background = context.Background()

func (c *Counters) Sessions(change int64)    { c.of.Sessions.Add(background, change) }
func (c *Counters) Streams(change int64)     { c.of.Streams.Add(background, change) }
func (c *Counters) CallStreams(change int64) { c.of.CallStreams.Add(background, change) }

func (c *Counters) SessionDetached(reason string) {
	c.of.SessionsDetached.Add(background, 1, receiverkit.With("reason", reason))
}

func (c *Counters) StreamCut()        { c.of.StreamsCut.Add(background, 1) }
func (c *Counters) Cleared()          { c.of.Cleared.Add(background, 1) }
func (c *Counters) ConnectionFailed() { c.of.ConnectionFailures.Add(background, 1) }

func (c *Counters) BadData(what string) {
	c.of.BadData.Add(background, 1, receiverkit.With("what", what))
}

func (c *Counters) Received(packets, bytes int64) {
	receiverkit.Count(c.of.Packets, packets)
	c.of.Bytes.Add(background, bytes)
}

func (c *Counters) PacketsLost(n int64)     { receiverkit.Count(c.of.PacketsLost, n) }
func (c *Counters) EventsRead(n int64)      { receiverkit.Count(c.of.Events, n) }
func (c *Counters) EventsLate(n int64)      { receiverkit.Count(c.of.EventsLate, n) }
func (c *Counters) EventsDiscarded(n int64) { receiverkit.Count(c.of.EventsDiscarded, n) }

func (c *Counters) CallEventsPacked(n int64) { c.of.CallEvents.Add(background, n) }
func (c *Counters) CallValuesCut(n int64)    { receiverkit.Count(c.of.CallValuesCut, n) }

func (c *Counters) CallEventsDropped(n int64, reason string) {
	c.of.CallEventsDropped.Add(background, n, receiverkit.With("reason", reason))
}

func (c *Counters) Break(cause callevent.Cause) { c.of.Breaks.Add(background, 1, c.causes[cause]) }

func (c *Counters) BatchAccepted() { c.of.Batches.Add(background, 1) }

// BatchDropped counts a batch, and its events.
func (c *Counters) BatchDropped(events int, reason string) {
	c.of.BatchesDropped.Add(background, 1, receiverkit.With("reason", reason))
	c.CallEventsDropped(int64(events), reason)
}

func (c *Counters) NamesForgotten(n int64) { c.of.NamesForgotten.Add(background, n) }
func (c *Counters) NameUnknown()           { c.of.NamesUnknown.Add(background, 1) }
func (c *Counters) ObjectRefused()         { c.of.ObjectsRefused.Add(background, 1) }
func (c *Counters) SymbolFileRefused()     { c.of.FilesRefused.Add(background, 1) }

func (c *Counters) LineUnknown(reason string) {
	c.of.LinesUnknown.Add(background, 1, receiverkit.With("reason", reason))
}

func (c *Counters) HandoverRetried()         { c.of.HandoverRetries.Add(background, 1) }
func (c *Counters) LogValuesLeftOut(n int64) { receiverkit.Count(c.of.LogValuesLeftOut, n) }

func (c *Counters) LogRecordsDropped(n int, reason string) {
	c.of.LogRecordsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}

// MetricPointsDropped counts metric points that were dropped.
func (c *Counters) MetricPointsDropped(n int, reason string) {
	c.of.MetricPointsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}
