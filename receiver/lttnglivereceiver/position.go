// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// traceRecord is how far a trace was handed on: with it, reading goes on where it
// ended, and call streams with the numbers that come next.
type traceRecord struct {
	// Streams are the positions of streams, by path and channel.
	Streams map[string]merge.Position `json:"streams"`
	// Processes are those that had call events and were not seen to end.
	Processes []processRecord `json:"processes,omitempty"`
}

// processRecord is where the call stream of a process stands.
type processRecord struct {
	Namespace int64  `json:"namespace,omitempty"`
	PID       int64  `json:"pid"`
	Begun     int64  `json:"begun"`
	Next      uint64 `json:"next"`
	Program   string `json:"program,omitempty"`
	// Objects are what it has loaded, if the list was complete.
	Objects []symbols.Mapping `json:"objects,omitempty"`
}

// positions are the records of traces: in memory, and in a storage extension where
// one is configured.
type positions struct {
	mu      sync.Mutex
	records map[string]*traceRecord
	// bytes is how many the records take, about.
	bytes int
	// order are the traces that there are records of, the one that was told of last at
	// the end.
	order []string
	// memory has the bytes; nil: maxPositionBytes is their only bound.
	memory *budget.Account

	client  storage.Client
	logger  *zap.Logger
	failing bool
}

const (
	// maxTraces bounds the traces that positions are kept of, and maxPositionBytes what
	// these take. Beyond it those that were not told of for longest are forgotten.
	maxTraces        = 4096
	maxPositionBytes = 64 * mib

	keyOrder  = "traces"
	keyPrefix = "trace."
)

func newPositions() *positions { return &positions{records: map[string]*traceRecord{}} }

// open opens the storage, if one is configured.
func (p *positions) open(ctx context.Context, host component.Host, env *environment) error {
	p.logger = env.logger
	id := env.config.Storage
	if id == nil {
		return nil
	}
	extension, ok := host.GetExtensions()[*id]
	if !ok {
		return fmt.Errorf("storage is %q: there is no such extension: add it under extensions and service.extensions", id)
	}
	store, ok := extension.(storage.Extension)
	if !ok {
		return fmt.Errorf("storage is %q: it is no storage extension: set it to one, such as file_storage", id)
	}
	client, err := store.GetClient(ctx, component.KindReceiver, env.id, "")
	if err != nil {
		return fmt.Errorf("storage %q: %w", id, err)
	}
	order, err := client.Get(ctx, keyOrder)
	if err == nil && order != nil {
		err = json.Unmarshal(order, &p.order)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("storage %q: reading which traces there are: %w", id, err), client.Close(ctx))
	}
	p.client = client
	return nil
}

func (p *positions) close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		return nil
	}
	err := p.client.Close(ctx)
	p.client = nil
	return err
}

// get is the record of a trace; an empty one if there is none.
func (p *positions) get(ctx context.Context, trace string) traceRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[trace]; r != nil {
		return *r
	}
	if p.client == nil || !slices.Contains(p.order, trace) {
		return traceRecord{}
	}
	var r traceRecord
	b, err := p.client.Get(ctx, keyPrefix+trace)
	if err == nil && b != nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		p.logger.Warn("How far a trace was read is not known: it is read from its beginning", zap.String("trace", trace), zap.Error(err))
		return traceRecord{}
	}
	return r
}

// put keeps the record of a trace.
func (p *positions) put(ctx context.Context, trace string, r *traceRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ordered := len(p.order) > 0 && p.order[len(p.order)-1] == trace
	forgotten := p.keep(trace, r)
	if p.client == nil {
		return
	}
	// Numbers and texts can always be written.
	b, _ := json.Marshal(r)
	operations := []*storage.Operation{storage.SetOperation(keyPrefix+trace, b)}
	for _, old := range forgotten {
		operations = append(operations, storage.DeleteOperation(keyPrefix+old))
	}
	if !ordered || len(forgotten) > 0 {
		order, _ := json.Marshal(p.order)
		operations = append(operations, storage.SetOperation(keyOrder, order))
	}
	err := p.client.Batch(ctx, operations...)
	if err != nil && !p.failing {
		p.logger.Error("How far traces were read cannot be stored: after a restart they may be read twice", zap.Error(err))
	}
	p.failing = err != nil
}

// keep keeps a record in memory, and gives the traces that were forgotten for it.
func (p *positions) keep(trace string, r *traceRecord) (forgotten []string) {
	p.bytes += r.size() - p.records[trace].size()
	p.records[trace] = r
	if i := slices.Index(p.order, trace); i >= 0 {
		p.order = slices.Delete(p.order, i, i+1)
	}
	p.order = append(p.order, trace)
	for len(p.order) > 1 && (len(p.order) > maxTraces || p.bytes > maxPositionBytes || p.exceeds()) {
		old := p.order[0]
		p.order = slices.Delete(p.order, 0, 1)
		p.bytes -= p.records[old].size()
		delete(p.records, old)
		forgotten = append(forgotten, old)
	}
	return forgotten
}

// fit forgets records that the memory budget has no room for.
func (p *positions) fit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil {
		return // what is stored is forgotten with the next record
	}
	for len(p.order) > 0 && p.exceeds() {
		old := p.order[0]
		p.order = slices.Delete(p.order, 0, 1)
		p.bytes -= p.records[old].size()
		delete(p.records, old)
	}
}

// exceeds reports whether the records take more than the memory budget has for them. The lock
// is held.
func (p *positions) exceeds() bool { return p.memory != nil && p.memory.Set(int64(p.bytes)) > 0 }

// size is how many bytes a record takes, about.
func (r *traceRecord) size() int {
	const position, process, object = 100, 100, 100
	if r == nil {
		return 0
	}
	bytes := 0
	for key := range r.Streams {
		bytes += position + len(key)
	}
	for i := range r.Processes {
		bytes += process + len(r.Processes[i].Program)
		for j := range r.Processes[i].Objects {
			bytes += object + len(r.Processes[i].Objects[j].Path)
		}
	}
	return bytes
}
