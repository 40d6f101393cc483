// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/exporter"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/history"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadata"
	"github.com/callbraid/callbraid/internal/call/calltree"
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

func (g *flameGraph) logBounds() {
	counters := g.store.Counters()
	g.bounds.log(time.Now(), &counters, g.set.Logger)
}
