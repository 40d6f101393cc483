// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receivertestbed

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
)

// OneReceiverForAllSignals fails unless a factory makes one receiver of a configuration for all of its signals, and another
// one of another configuration, or after a shutdown. newConfig returns a valid configuration, whose peers need not exist.
func OneReceiverForAllSignals(t *testing.T, factory receiver.Factory, newConfig func() component.Config) {
	t.Helper()
	config := newConfig()
	all := create(t, factory, config)
	first := all[0]
	for _, other := range all[1:] {
		assert.Same(t, first, other)
	}
	second := create(t, factory, newConfig())[0]
	assert.NotSame(t, first, second)

	for range 3 {
		require.NoError(t, first.Start(t.Context(), componenttest.NewNopHost()))
	}
	for range 3 {
		require.NoError(t, first.Shutdown(t.Context()))
	}
	again := create(t, factory, config)[0]
	assert.NotSame(t, first, again, "after a reload")
	require.NoError(t, again.Shutdown(t.Context()))
	require.NoError(t, second.Shutdown(t.Context()))
}

// create returns the receiver of each signal that the factory has.
func create(t *testing.T, factory receiver.Factory, config component.Config) (all []component.Component) {
	t.Helper()
	ctx, settings, next := t.Context(), receivertest.NewNopSettings(factory.Type()), consumertest.NewNop()
	created := func(c component.Component, err error) {
		t.Helper()
		require.NoError(t, err)
		all = append(all, c)
	}
	if factory.TracesStability() != component.StabilityLevelUndefined {
		created(factory.CreateTraces(ctx, settings, config, next))
	}
	if factory.LogsStability() != component.StabilityLevelUndefined {
		created(factory.CreateLogs(ctx, settings, config, next))
	}
	if factory.MetricsStability() != component.StabilityLevelUndefined {
		created(factory.CreateMetrics(ctx, settings, config, next))
	}
	if x, ok := factory.(xreceiver.Factory); ok && x.ProfilesStability() != component.StabilityLevelUndefined {
		created(x.CreateProfiles(ctx, settings, config, next))
	}
	return all
}
