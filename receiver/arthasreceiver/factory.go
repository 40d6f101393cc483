// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
)

// NewFactory returns the factory of the receiver.
func NewFactory() receiver.Factory {
	shared := receiverkit.Share(newReceiver)
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return createDefaultConfig() },
		receiver.WithTraces(shared.CreateTraces, metadata.TracesStability),
		receiver.WithLogs(shared.CreateLogs, metadata.LogsStability),
		receiver.WithMetrics(shared.CreateMetrics, metadata.MetricsStability),
	)
}
