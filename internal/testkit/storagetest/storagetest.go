// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package storagetest is a storage extension for tests: it stores in memory, and outlives the components that use it.
package storagetest

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// ID is the ID of a Memory in its Host.
var ID = component.MustNewID("memory")

// Memory is a storage extension.
type Memory struct {
	component.StartFunc
	component.ShutdownFunc
	mu     sync.Mutex
	values map[string][]byte
	open   int
}

// New returns an empty storage.
func New() *Memory { return &Memory{values: map[string][]byte{}} }

// Host returns a host with this extension.
func (m *Memory) Host() component.Host { return Host(map[component.ID]component.Component{ID: m}) }

// Host returns a host with extensions.
func Host(extensions map[component.ID]component.Component) component.Host {
	return host{componenttest.NewNopHost(), extensions}
}

type host struct {
	component.Host
	extensions map[component.ID]component.Component
}

func (h host) GetExtensions() map[component.ID]component.Component { return h.extensions }

// Len returns the number of stored values. Open returns the number of clients that were not closed.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}

func (m *Memory) Open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// GetClient returns a client. All share the values.
func (m *Memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open++
	return client{m}, nil
}

type client struct{ of *Memory }

func (c client) Get(ctx context.Context, key string) ([]byte, error) {
	get := storage.GetOperation(key)
	err := c.Batch(ctx, get)
	return get.Value, err
}

func (c client) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

func (c client) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

func (c client) Batch(_ context.Context, operations ...*storage.Operation) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	for _, o := range operations {
		switch o.Type {
		case storage.Get:
			o.Value = slices.Clone(c.of.values[o.Key])
		case storage.Set:
			c.of.values[o.Key] = slices.Clone(o.Value)
		case storage.Delete:
			delete(c.of.values, o.Key)
		}
	}
	return nil
}

func (c client) Close(context.Context) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.open--
	return nil
}
