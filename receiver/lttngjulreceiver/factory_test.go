// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
)

func TestAllSignalsShareOneReceiver(t *testing.T) {
	ctx, factory, settings := context.Background(), NewFactory(), receivertest.NewNopSettings(metadata.Type)
	config := factory.CreateDefaultConfig().(*Config)
	config.Endpoint = "localhost:0"
	logs, err := factory.CreateLogs(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	metrics, err := factory.CreateMetrics(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	assert.Same(t, logs, metrics)

	other := factory.CreateDefaultConfig().(*Config)
	other.Endpoint = "localhost:0"
	second, err := factory.CreateLogs(ctx, settings, other, consumertest.NewNop())
	require.NoError(t, err)
	assert.NotSame(t, logs, second)

	for range 3 {
		require.NoError(t, logs.Start(ctx, componenttest.NewNopHost()))
	}
	for range 3 {
		require.NoError(t, logs.Shutdown(ctx))
	}
	// After a reload the same configuration makes another receiver.
	again, err := factory.CreateLogs(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	assert.NotSame(t, logs, again)
	require.NoError(t, again.Shutdown(ctx))
	require.NoError(t, second.Shutdown(ctx))
}
