// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadatatest"
)

// bed is a flame graph with its telemetry.
type bed struct {
	*flameGraph
	telemetry *componenttest.Telemetry
}

func newBed(t testing.TB, changes ...func(*Config)) *bed {
	t.Helper()
	b := &bed{telemetry: componenttest.NewTelemetry()}
	cfg := createDefaultConfig().(*Config)
	for _, change := range changes {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	g, err := newFlameGraph(metadatatest.NewSettings(b.telemetry), cfg, func() {})
	require.NoError(t, err)
	b.flameGraph = g
	t.Cleanup(func() {
		require.NoError(t, g.shutdown(context.Background()))
		require.NoError(t, b.telemetry.Shutdown(context.Background()))
	})
	return b
}
