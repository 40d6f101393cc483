// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sharedexporter

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
)

// counted counts the calls of its methods.
type counted struct {
	starts, shutdowns int
	err               error
}

func (c *counted) Start(context.Context, component.Host) error { c.starts++; return c.err }
func (c *counted) Shutdown(context.Context) error              { c.shutdowns++; return c.err }

var (
	typ       = component.MustNewType("counted")
	errBroken = errors.New("broken")
)

func exporters(made *counted) *Exporters[*counted] {
	return &Exporters[*counted]{Make: func(exporter.Settings, component.Config) (*counted, error) { return made, made.err }}
}

func TestTheFirstSignalStartsTheExporterAndTheLastShutsItDown(t *testing.T) {
	made := &counted{}
	all, config, set := exporters(made), &struct{ any }{}, exportertest.NewNopSettings(typ)
	traces, err := all.Signal(set, config)
	require.NoError(t, err)
	logs, err := all.Signal(set, config)
	require.NoError(t, err)
	assert.Same(t, traces.Exporter, logs.Exporter)
	for range 2 {
		require.NoError(t, traces.Start(t.Context(), nil))
		require.NoError(t, logs.Start(t.Context(), nil))
	}
	assert.Equal(t, counted{starts: 1}, *made)
	for range 2 {
		require.NoError(t, traces.Shutdown(t.Context()))
	}
	assert.Zero(t, made.shutdowns, "the queue of the other signal can still be written")
	assert.Equal(t, 1, all.Len())
	for range 2 {
		require.NoError(t, logs.Shutdown(t.Context()))
	}
	assert.Equal(t, counted{starts: 1, shutdowns: 1}, *made)
	assert.Zero(t, all.Len(), "a reload makes another one")
}

func TestEachConfigurationHasItsExporter(t *testing.T) {
	all := &Exporters[*counted]{Make: func(exporter.Settings, component.Config) (*counted, error) { return &counted{}, nil }}
	first, err := all.Signal(exportertest.NewNopSettings(typ), &struct{ any }{})
	require.NoError(t, err)
	second, err := all.Signal(exportertest.NewNopSettings(typ), &struct{ any }{})
	require.NoError(t, err)
	assert.NotSame(t, first.Exporter, second.Exporter)
	require.NoError(t, first.Shutdown(t.Context()))
	assert.Equal(t, 1, first.Exporter.shutdowns, "also without a start")
	assert.Zero(t, second.Exporter.shutdowns)
}

func TestErrorsReachEachSignal(t *testing.T) {
	made := &counted{}
	all, config, set := exporters(made), &struct{ any }{}, exportertest.NewNopSettings(typ)
	traces, err := all.Signal(set, config)
	require.NoError(t, err)
	logs, err := all.Signal(set, config)
	require.NoError(t, err)
	made.err = errBroken
	for _, s := range []*Signal[*counted]{traces, logs} {
		assert.ErrorIs(t, s.Start(t.Context(), nil), errBroken)
	}
	require.NoError(t, traces.Shutdown(t.Context()))
	assert.ErrorIs(t, logs.Shutdown(t.Context()), errBroken)
	assert.Equal(t, counted{starts: 1, shutdowns: 1, err: errBroken}, *made)
	_, err = all.Signal(set, config)
	require.ErrorIs(t, err, errBroken)
	assert.Zero(t, all.Len())
}
