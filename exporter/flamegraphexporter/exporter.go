// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadata"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
)

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

// hold reports the memory of call trees and windows, and returns the bytes that the trees have
// to free. Kept windows go first, because they are copies. The store calls it.
func (g *flameGraph) hold(trees int64) (excess int64) {
	select {
	case <-g.memory.opened:
	default:
		return 0
	}
	if h := g.history.Load(); h != nil {
		trees += h.Memory()
	}
	handler := g.server.handler.Load()
	if handler == nil {
		return g.memory.account.Set(trees)
	}
	if excess = g.memory.account.Set(trees + handler.KeptBytes()); excess > 0 {
		handler.ShedBytes(excess)
		excess = g.memory.account.Set(trees + handler.KeptBytes())
	}
	return excess
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
