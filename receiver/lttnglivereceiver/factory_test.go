// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

func TestThereIsOneReceiverForAllSignals(t *testing.T) {
	ctx, factory, settings := context.Background(), NewFactory(), receivertest.NewNopSettings(metadata.Type)
	config := factory.CreateDefaultConfig().(*Config)
	config.Endpoint = "localhost:1"
	traces, err := factory.CreateTraces(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	logs, err := factory.CreateLogs(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	metrics, err := factory.CreateMetrics(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	assert.Same(t, traces, logs)
	assert.Same(t, traces, metrics)

	other := factory.CreateDefaultConfig().(*Config)
	other.Endpoint = "localhost:1"
	second, err := factory.CreateTraces(ctx, settings, other, consumertest.NewNop())
	require.NoError(t, err)
	assert.NotSame(t, traces, second)

	for range 3 {
		require.NoError(t, traces.Start(ctx, componenttest.NewNopHost()))
	}
	for range 3 {
		require.NoError(t, traces.Shutdown(ctx))
	}
	// After a reload, the same configuration makes another receiver.
	again, err := factory.CreateTraces(ctx, settings, config, consumertest.NewNop())
	require.NoError(t, err)
	assert.NotSame(t, traces, again)
	require.NoError(t, again.Shutdown(ctx))
	require.NoError(t, second.Shutdown(ctx))
}
