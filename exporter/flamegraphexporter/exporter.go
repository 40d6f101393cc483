// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/history"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadata"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
)

// flameGraph is the exporter of a configuration, for both signals. It is started and shut down once.
type flameGraph struct {
	config    *Config
	set       exporter.Settings
	store     *calltree.Store
	telemetry *metadata.TelemetryBuilder
	bounds    bounds
	memory    memory
	// spans has memory for chunks of spans.
	spans sync.Pool
	// duplicates counts ignored spans: an attribute marks them as a second span of the same call.
	duplicates atomic.Uint64
	recent     recentProfiles
	// history has the stored trees; nil: none are stored.
	history atomic.Pointer[history.History]
	server  server
}

func newFlameGraph(set exporter.Settings, config *Config) (*flameGraph, error) {
	telemetry, err := metadata.NewTelemetryBuilder(ownmetrics.Of(component.KindExporter, set.ID, set.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	g := &flameGraph{config: config, set: set, telemetry: telemetry, memory: newMemory()}
	settings := config.settings()
	settings.Hold = g.hold
	g.store = calltree.NewStore(settings)
	g.spans.New = func() any { return new([chunk]calltree.Span) }
	if err := g.observe(); err != nil {
		telemetry.Shutdown()
		return nil, err
	}
	return g, nil
}

// Start opens the storage, and serves the pages.
func (g *flameGraph) Start(ctx context.Context, host component.Host) error {
	g.openMemory(host)
	if err := g.openHistory(ctx, host); err != nil {
		return err
	}
	return g.serve(ctx, host)
}

// Shutdown ends the pages, and stores the trees.
func (g *flameGraph) Shutdown(ctx context.Context) error {
	err := errors.Join(g.server.stop(ctx), g.closeHistory(ctx))
	g.memory.stop()
	g.telemetry.Shutdown()
	return err
}
