// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

func anyAddress() *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.NetAddr.Endpoint = "localhost:0"
	return cfg
}

func TestBothSignalsOfAConfigurationFoldIntoOneStore(t *testing.T) {
	ctx, set, cfg := t.Context(), exportertest.NewNopSettings(typ), anyAddress()
	all := newExporters()
	traces, err := all.createTraces(ctx, set, cfg)
	require.NoError(t, err)
	profiles, err := all.createProfiles(ctx, set, cfg)
	require.NoError(t, err)
	other, err := all.createTraces(ctx, set, anyAddress())
	require.NoError(t, err)
	require.Equal(t, 2, all.Len())
	signal, err := all.Signal(set, cfg)
	require.NoError(t, err)
	require.NoError(t, signal.Shutdown(ctx))
	g := signal.Exporter

	for _, c := range []component.Component{traces, profiles, other} {
		require.NoError(t, c.Start(ctx, componenttest.NewNopHost()))
	}
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("f")
	td.MarkReadOnly()
	require.NoError(t, traces.ConsumeTraces(ctx, td))
	pd := pprofile.NewProfiles()
	pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty().Values().Append(3)
	pd.MarkReadOnly()
	require.NoError(t, profiles.ConsumeProfiles(ctx, pd))
	services := g.store.Services()
	require.Len(t, services, 1)
	assert.Equal(t, unknownService, services[0].Name)
	assert.Equal(t, []calltree.Kind{calltree.Calls, {Type: noFunction}}, services[0].Kinds)

	for _, c := range []component.Component{traces, profiles, profiles} {
		require.NoError(t, c.Shutdown(ctx))
	}
	assert.Equal(t, 1, all.Len(), "a reload makes another")
	require.NoError(t, other.Shutdown(ctx))
	assert.Zero(t, all.Len())
}

func TestASignalIsShutDownThatWasNotStarted(t *testing.T) {
	factory := NewFactory()
	traces, err := factory.CreateTraces(t.Context(), exportertest.NewNopSettings(typ), anyAddress())
	require.NoError(t, err)
	require.NoError(t, traces.Shutdown(t.Context()))
	profiles, err := factory.(xexporter.Factory).CreateProfiles(t.Context(), exportertest.NewNopSettings(typ), anyAddress())
	require.NoError(t, err)
	require.NoError(t, profiles.Shutdown(t.Context()))
}
