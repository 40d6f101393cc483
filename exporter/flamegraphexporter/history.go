// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/history"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/web"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/storageclient"
)

// openHistory opens the storage, and restores the trees in it. Only a wrong setting is an error. Without a storage that works, trees are
// in memory only.
func (g *flameGraph) openHistory(ctx context.Context, host component.Host) error {
	if g.config.Storage == nil {
		return nil
	}
	client, err := storageclient.Open(ctx, host, *g.config.Storage, component.KindExporter, g.set.ID)
	if errors.Is(err, storageclient.ErrSetting) {
		return err
	}
	var h *history.History
	if err == nil {
		if h, err = history.Open(ctx, client, g.store, g.historySettings()); err != nil {
			err = errors.Join(err, client.Close(ctx))
		}
	}
	if err != nil {
		g.set.Logger.Error("The storage cannot be opened: call trees are in memory only, and those of before are not shown. "+
			"Repair or remove its files, and restart the collector", zap.Error(err))
		return nil
	}
	g.history.Store(h)
	h.Start()
	return nil
}

func (g *flameGraph) historySettings() history.Settings {
	c := &g.config.History
	return history.Settings{
		Hours: c.Hours, Days: c.Days, MaxBytes: int64(c.MaxMiB) * mib, MaxPaths: g.config.MaxNodes, Interval: c.SaveInterval,
		Reserve: func(bytes int64) (func(), error) { return g.forPage(bytes, func() {}) },
		Dropped: g.droppedStored, Logger: g.set.Logger, Now: time.Now,
	}
}

func (g *flameGraph) droppedStored(reason history.Reason, trees int) {
	g.telemetry.ExporterFlameGraphDroppedStoredTrees.Add(context.Background(), int64(trees), metric.WithAttributes(attribute.String("reason", string(reason))))
}

func (g *flameGraph) observeStored(_ context.Context, o metric.Int64Observer) error {
	size := int64(0)
	if h := g.history.Load(); h != nil {
		size = h.Stored()
	}
	o.Observe(size)
	return nil
}

// closeHistory saves all trees, and closes the storage.
func (g *flameGraph) closeHistory(ctx context.Context) error {
	h := g.history.Load()
	if h == nil {
		return nil
	}
	return h.Close(ctx)
}

// windows are the stored windows; nil: there are none.
func (g *flameGraph) windows() web.History {
	if h := g.history.Load(); h != nil {
		return h
	}
	return nil
}

// trees are the trees for the pages.
func (g *flameGraph) trees() web.Trees {
	if h := g.history.Load(); h != nil {
		return savedTrees{g.store, h}
	}
	return g.store
}

// savedTrees are trees that are saved before and after a reset, so that windows keep the calls before it, and a restart does not bring
// them back.
type savedTrees struct {
	*calltree.Store
	history *history.History
}

func (t savedTrees) Reset(service string) bool {
	t.history.Save(context.Background())
	defer t.history.Save(context.Background())
	t.history.ForgetUnrestored(func(name string) bool { return name == service })
	return t.Store.Reset(service)
}

func (t savedTrees) ResetAll() {
	t.history.Save(context.Background())
	defer t.history.Save(context.Background())
	t.history.ForgetUnrestored(func(string) bool { return true })
	t.Store.ResetAll()
}
