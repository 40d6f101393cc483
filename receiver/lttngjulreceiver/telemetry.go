// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

// telemetry has the receiver's own counters.
type telemetry struct {
	builder *metadata.TelemetryBuilder
}

func newTelemetry(kit *receiverkit.Kit) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(kit.Telemetry)
	if err != nil {
		return nil, err
	}
	return &telemetry{builder: builder}, nil
}

// Where unreadable data arrived.
const (
	badRegistration = "registration"
	badReply        = "reply"
	badUnasked      = "unasked"
)

var background = context.Background()

func (t *telemetry) acceptError() { t.builder.ReceiverLttngJulAcceptErrors.Add(background, 1) }

func (t *telemetry) connections(change int64) {
	t.builder.ReceiverLttngJulConnections.Add(background, change)
}

func (t *telemetry) evicted(reason slots.Reason) {
	t.builder.ReceiverLttngJulConnectionsEvicted.Add(background, 1, receiverkit.With("reason", string(reason)))
}

func (t *telemetry) refused(why session.Cause) {
	t.builder.ReceiverLttngJulRefused.Add(background, 1, receiverkit.With("reason", string(why)))
}

func (t *telemetry) agents(change int64) { t.builder.ReceiverLttngJulAgents.Add(background, change) }

func (t *telemetry) agentGone(why session.Cause) {
	t.builder.ReceiverLttngJulAgentsGone.Add(background, 1, receiverkit.With("cause", string(why)))
}

func (t *telemetry) badData(where string) {
	t.builder.ReceiverLttngJulBadData.Add(background, 1, receiverkit.With("where", where))
}

func (t *telemetry) command(command lttngagent.CommandType, r session.Result) {
	t.builder.ReceiverLttngJulCommands.Add(background, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("command", commandAttribute(command).String()), attribute.String("result", resultAttribute(r).String()))))
}

func (t *telemetry) portFileLost() { t.builder.ReceiverLttngJulPortFilesLost.Add(background, 1) }

func (t *telemetry) logRecordsDropped(n int, reason string) {
	t.builder.ReceiverLttngJulLogRecordsDropped.Add(background, int64(n), receiverkit.With("reason", reason))
}
