// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// Reasons why callers were not seen.
const (
	reasonTimeout = "timeout"
	reasonLimit   = "limit"
	reasonCycle   = "cycle"
)

// observe has the counts of the store read whenever telemetry is collected.
func (g *flameGraph) observe() error {
	t := g.telemetry
	counted := func(of func(*calltree.Counters) uint64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			counters := g.store.Counters()
			o.Observe(int64(of(&counters)))
			return nil
		}
	}
	held := func(of func(*calltree.Usage) int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			usage := g.store.Usage()
			o.Observe(int64(of(&usage)))
			return nil
		}
	}
	return errors.Join(
		t.RegisterExporterFlameGraphSpansCallback(counted(func(c *calltree.Counters) uint64 { return c.Spans })),
		t.RegisterExporterFlameGraphDuplicateSpansCallback(counted(func(c *calltree.Counters) uint64 { return c.Duplicates + g.duplicates.Load() })),
		t.RegisterExporterFlameGraphUncountedSpansCallback(counted(func(c *calltree.Counters) uint64 { return c.UncountedSpans })),
		t.RegisterExporterFlameGraphPathCallsCallback(counted(func(c *calltree.Counters) uint64 { return c.Calls })),
		t.RegisterExporterFlameGraphDuplicateProfilesCallback(counted(func(*calltree.Counters) uint64 { return g.recent.ignored() })),
		t.RegisterExporterFlameGraphSamplesCallback(counted(func(c *calltree.Counters) uint64 { return c.Samples })),
		t.RegisterExporterFlameGraphDroppedSamplesCallback(counted(func(c *calltree.Counters) uint64 { return c.DroppedSamples })),
		t.RegisterExporterFlameGraphCutSamplesCallback(counted(func(c *calltree.Counters) uint64 { return c.CutSamples })),
		t.RegisterExporterFlameGraphOtherServicesCallback(counted(func(c *calltree.Counters) uint64 { return c.OtherServices })),
		t.RegisterExporterFlameGraphForgottenSpansCallback(counted(func(c *calltree.Counters) uint64 { return c.Forgotten })),
		t.RegisterExporterFlameGraphFoldedPathsCallback(counted(func(c *calltree.Counters) uint64 { return c.FoldedPaths })),
		t.RegisterExporterFlameGraphSilentServicesCallback(counted(func(c *calltree.Counters) uint64 { return c.SilentServices })),
		t.RegisterExporterFlameGraphRefusedWindowsCallback(counted(func(c *calltree.Counters) uint64 { return c.RefusedWindows })),
		t.RegisterExporterFlameGraphYieldedServicesCallback(counted(func(c *calltree.Counters) uint64 { return c.YieldedServices })),
		t.RegisterExporterFlameGraphShedCallback(g.observeShed),
		t.RegisterExporterFlameGraphRefusedPagesCallback(g.observeRefusedPages),
		t.RegisterExporterFlameGraphMemoryCallback(g.observeMemory),
		t.RegisterExporterFlameGraphStoredSizeCallback(g.observeStored),
		t.RegisterExporterFlameGraphDroppedWindowsCallback(g.observeDroppedWindows),
		t.RegisterExporterFlameGraphDroppedKeptSpansCallback(counted(func(c *calltree.Counters) uint64 { return c.DroppedKept })),
		t.RegisterExporterFlameGraphDroppedTracesCallback(counted(func(c *calltree.Counters) uint64 { return c.DroppedTraces })),
		t.RegisterExporterFlameGraphParentsNotSeenCallback(g.observeParentsNotSeen),
		t.RegisterExporterFlameGraphServicesCallback(held(func(u *calltree.Usage) int { return u.Services })),
		t.RegisterExporterFlameGraphNodesCallback(held(func(u *calltree.Usage) int { return u.Nodes })),
		t.RegisterExporterFlameGraphPendingSpansCallback(held(func(u *calltree.Usage) int { return u.Waiting })),
		t.RegisterExporterFlameGraphRememberedSpansCallback(held(func(u *calltree.Usage) int { return u.Remembered })),
		t.RegisterExporterFlameGraphNameMemoryCallback(held(func(u *calltree.Usage) int { return u.NameBytes })),
		t.RegisterExporterFlameGraphKeptSpansCallback(held(func(u *calltree.Usage) int { return u.Kept })),
	)
}

func (g *flameGraph) observeDroppedWindows(_ context.Context, o metric.Int64Observer) error {
	dropped := int64(0)
	if handler := g.server.handler.Load(); handler != nil {
		dropped = handler.DroppedWindows()
	}
	o.Observe(dropped)
	return nil
}

func (g *flameGraph) observeRefusedPages(_ context.Context, o metric.Int64Observer) error {
	refused := int64(0)
	if handler := g.server.handler.Load(); handler != nil {
		refused = handler.RefusedPages()
	}
	o.Observe(refused)
	return nil
}

func (g *flameGraph) observeMemory(_ context.Context, o metric.Int64Observer) error {
	bytes := g.store.Bytes()
	if h := g.history.Load(); h != nil {
		bytes += h.Memory()
	}
	if handler := g.server.handler.Load(); handler != nil {
		bytes += handler.KeptBytes()
	}
	o.Observe(bytes)
	return nil
}

// observeShed observes the data that the exporter dropped because the memory budget demanded
// memory.
func (g *flameGraph) observeShed(_ context.Context, o metric.Int64Observer) error {
	shed, windows := g.store.Counters().Shed, int64(0)
	if handler := g.server.handler.Load(); handler != nil {
		windows = handler.ShedWindows()
	}
	for _, of := range []struct {
		what  string
		count int64
	}{{"windows", windows}, {"kept_spans", int64(shed.KeptSpans)}, {"calls", int64(shed.Calls)}, {"paths", int64(shed.Paths)}} {
		o.Observe(of.count, metric.WithAttributeSet(attribute.NewSet(attribute.String("what", of.what))))
	}
	return nil
}

func (g *flameGraph) observeParentsNotSeen(_ context.Context, o metric.Int64Observer) error {
	notSeen := g.store.Counters().ParentsNotSeen
	for _, by := range []struct {
		reason string
		count  uint64
	}{{reasonTimeout, notSeen.Timeout}, {reasonLimit, notSeen.Limit}, {reasonCycle, notSeen.Cycle}} {
		o.Observe(int64(by.count), metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", by.reason))))
	}
	return nil
}
