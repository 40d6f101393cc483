// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/extension/agentcontrolextension/internal/metadata"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

// telemetry counts the work of the extension, for its operator.
type telemetry struct{ builder *metadata.TelemetryBuilder }

func newTelemetry(settings component.TelemetrySettings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	return &telemetry{builder: builder}, err
}

// Why an agent is not shown.
const (
	notShownMaxAgents = "max_agents"
	notShownDuplicate = "duplicate"
)

// commandUnknown is the command attribute of commands that no agent has.
const commandUnknown = "unknown"

var background = context.Background()

func (t *telemetry) shutdown() { t.builder.Shutdown() }

func (t *telemetry) agents(tracer string, change int64) {
	t.builder.ExtensionAgentControlAgents.Add(background, change, metric.WithAttributes(attribute.String("tracer", tracer)))
}

func (t *telemetry) notShown(reason string) {
	t.builder.ExtensionAgentControlAgentsNotShown.Add(background, 1, metric.WithAttributes(attribute.String("reason", reason)))
}

func (t *telemetry) command(tracer, command, result string) {
	t.builder.ExtensionAgentControlCommands.Add(background, 1, metric.WithAttributes(
		attribute.String("tracer", tracer), attribute.String("command", command), attribute.String("result", result)))
}

func (t *telemetry) connectionClosed(reason slots.Reason) {
	t.builder.ExtensionAgentControlConnectionsClosed.Add(background, 1, metric.WithAttributes(attribute.String("reason", string(reason))))
}

func (t *telemetry) busy() { t.builder.ExtensionAgentControlRequestsBusy.Add(background, 1) }
