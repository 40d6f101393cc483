// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadatatest"
	"github.com/callbraid/callbraid/internal/componentkit/sharedexporter"
)

// bed is a flame graph of one signal, with its telemetry.
type bed struct {
	*flameGraph
	signal    *sharedexporter.Signal[*flameGraph]
	telemetry *componenttest.Telemetry
}

// bedOf is a bed without telemetry, which the caller shuts down.
func bedOf(t testing.TB, set exporter.Settings, cfg *Config) *bed {
	t.Helper()
	signal, err := newExporters().Signal(set, cfg)
	require.NoError(t, err)
	return &bed{flameGraph: signal.Exporter, signal: signal}
}

func (b *bed) Start(ctx context.Context, host component.Host) error { return b.signal.Start(ctx, host) }

func (b *bed) Shutdown(ctx context.Context) error { return b.signal.Shutdown(ctx) }

func newBed(t testing.TB, changes ...func(*Config)) *bed {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	cfg := createDefaultConfig().(*Config)
	for _, change := range changes {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	b := bedOf(t, metadatatest.NewSettings(telemetry), cfg)
	b.telemetry = telemetry
	t.Cleanup(func() {
		require.NoError(t, b.Shutdown(context.Background()))
		require.NoError(t, b.telemetry.Shutdown(context.Background()))
	})
	return b
}
