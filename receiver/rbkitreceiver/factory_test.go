// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

func TestAllSignalsShareOneReceiver(t *testing.T) {
	ctx, factory, settings := context.Background(), NewFactory().(xreceiver.Factory), receivertest.NewNopSettings(metadata.Type)
	config := factory.CreateDefaultConfig().(*Config)
	config.Servers = []ServerConfig{{Publish: "localhost:1"}}
	traces, err := factory.CreateTraces(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	logs, err := factory.CreateLogs(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	metrics, err := factory.CreateMetrics(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	profiles, err := factory.CreateProfiles(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	assert.Same(t, traces, logs)
	assert.Same(t, traces, metrics)
	assert.Same(t, traces, profiles)
	require.NoError(t, traces.Shutdown(ctx))
}
