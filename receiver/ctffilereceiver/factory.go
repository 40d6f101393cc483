// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/metadata"
)

// NewFactory returns the factory of the receiver.
func NewFactory() receiver.Factory {
	common := new(common)
	shared := receiverkit.Share(func(settings receiver.Settings, config *Config) (*receiverkit.Receiver, error) {
		return newReceiver(settings, config, common)
	})
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return createDefaultConfig() },
		receiver.WithTraces(shared.CreateTraces, metadata.TracesStability),
		receiver.WithLogs(shared.CreateLogs, metadata.LogsStability),
		receiver.WithMetrics(shared.CreateMetrics, metadata.MetricsStability),
	)
}
