// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
)

// NewFactory returns the factory of the receiver. It offers profiles if the collector's feature gate service.profilesSupport
// is on.
func NewFactory() receiver.Factory {
	shared := receiverkit.Share(newReceiver)
	return xreceiver.NewFactory(
		metadata.Type,
		func() component.Config { return createDefaultConfig() },
		xreceiver.WithTraces(shared.CreateTraces, metadata.TracesStability),
		xreceiver.WithLogs(shared.CreateLogs, metadata.LogsStability),
		xreceiver.WithMetrics(shared.CreateMetrics, metadata.MetricsStability),
		xreceiver.WithProfiles(shared.CreateProfiles, metadata.ProfilesStability),
	)
}
