// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package position stores the positions of traces in memory, and in a storage extension if there is one. With a
// position, a reader continues each stream and each call stream where it stopped.
package position

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
	"github.com/callbraid/callbraid/internal/componentkit/storageclient"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/process"
)

// Trace is how far a trace was read.
type Trace struct {
	// Recording identifies the recording, if its key does not.
	Recording string `json:"recording,omitempty"`
	// Streams are the positions of its streams, by path and channel.
	Streams map[string]merge.Position `json:"streams"`
	// Processes have call events, and their end was not read.
	Processes []process.Record `json:"processes,omitempty"`
	// Threads are the known threads of a trace of the kernel.
	Threads []process.ThreadRecord `json:"threads,omitempty"`
}

// Store has the positions of traces, by their keys. Several goroutines may use it.
type Store struct {
	logger *zap.Logger
	// memory counts the bytes; nil: maxBytes is their only bound.
	memory *budget.Account

	mu     sync.Mutex
	traces map[string]*Trace
	// bytes is the approximate size of the positions.
	bytes int
	// order contains the keys of the traces, the last set one at the end.
	order []string

	client  storage.Client
	failing bool
}

const (
	// maxTraces and maxBytes bound the positions and their size. Beyond it the store forgets those
	// that were set the longest time ago.
	maxTraces = 4096
	maxBytes  = 64 << 20

	keyOrder  = "traces"
	keyPrefix = "trace."
)

// NewStore returns an empty store. memory counts its bytes; nil: no memory budget.
func NewStore(logger *zap.Logger, memory *budget.Account) *Store {
	return &Store{logger: logger, memory: memory, traces: map[string]*Trace{}}
}

// Open opens the storage extension of a receiver.
func (s *Store) Open(ctx context.Context, host component.Host, extensionID, receiver component.ID) error {
	client, err := storageclient.Open(ctx, host, extensionID, component.KindReceiver, receiver)
	if err != nil {
		return err
	}
	order, err := client.Get(ctx, keyOrder)
	if err == nil && order != nil {
		err = json.Unmarshal(order, &s.order)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("storage %q: reading the list of traces: %w", extensionID, err), client.Close(ctx))
	}
	s.client = client
	return nil
}

// Close closes the storage extension.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return nil
	}
	err := s.client.Close(ctx)
	s.client = nil
	return err
}

// Get returns the position of a trace, or an empty one if the trace is unknown.
func (s *Store) Get(ctx context.Context, key string) Trace {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.traces[key]; t != nil {
		return *t
	}
	if s.client == nil || !slices.Contains(s.order, key) {
		return Trace{}
	}
	var t Trace
	b, err := s.client.Get(ctx, keyPrefix+key)
	if err == nil && b != nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil {
		s.logger.Warn("The position of a trace cannot be read from storage: the trace is read from its beginning", zap.String("trace", key), zap.Error(err))
		return Trace{}
	}
	return t
}

// Set sets the position of a trace.
func (s *Store) Set(ctx context.Context, key string, t *Trace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isLast := len(s.order) > 0 && s.order[len(s.order)-1] == key
	forgotten := s.setInMemory(key, t)
	if s.client == nil {
		return
	}
	// Marshal cannot fail for numbers and texts.
	b, _ := json.Marshal(t)
	operations := []*storage.Operation{storage.SetOperation(keyPrefix+key, b)}
	for _, old := range forgotten {
		operations = append(operations, storage.DeleteOperation(keyPrefix+old))
	}
	if !isLast || len(forgotten) > 0 {
		order, _ := json.Marshal(s.order)
		operations = append(operations, storage.SetOperation(keyOrder, order))
	}
	err := s.client.Batch(ctx, operations...)
	if err != nil && !s.failing {
		s.logger.Error("The positions of traces cannot be stored: after a restart they may be read twice", zap.Error(err))
	}
	s.failing = err != nil
}

// setInMemory sets a position in memory, and returns the keys of traces that had to be forgotten.
func (s *Store) setInMemory(key string, t *Trace) (forgotten []string) {
	s.bytes += t.size() - s.traces[key].size()
	s.traces[key] = t
	if i := slices.Index(s.order, key); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
	s.order = append(s.order, key)
	for len(s.order) > 1 && (len(s.order) > maxTraces || s.bytes > maxBytes || s.exceedsBudget()) {
		forgotten = append(forgotten, s.forgetOldest())
	}
	return forgotten
}

func (s *Store) forgetOldest() (key string) {
	key = s.order[0]
	s.order = slices.Delete(s.order, 0, 1)
	s.bytes -= s.traces[key].size()
	delete(s.traces, key)
	return key
}

// Shrink deletes positions until the memory budget has room for the rest.
func (s *Store) Shrink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return // Set forgets stored positions
	}
	for len(s.order) > 0 && s.exceedsBudget() {
		s.forgetOldest()
	}
}

// exceedsBudget reports whether the memory budget has no room for the positions. The caller holds mu.
func (s *Store) exceedsBudget() bool { return s.memory != nil && s.memory.Set(int64(s.bytes)) > 0 }

// size returns the approximate size of a position in memory, in bytes.
func (t *Trace) size() int {
	const position, process, object, thread = 100, 100, 100, 40
	if t == nil {
		return 0
	}
	bytes := 0
	for key := range t.Streams {
		bytes += position + len(key)
	}
	for i := range t.Processes {
		bytes += process + len(t.Processes[i].Program)
		for j := range t.Processes[i].Objects {
			bytes += object + len(t.Processes[i].Objects[j].Path)
		}
	}
	for i := range t.Threads {
		bytes += thread + len(t.Threads[i].Name)
	}
	return bytes
}
