// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharedexporter makes one exporter for all signals of a configuration, such as one that has one file. The Collector
// creates, starts and shuts down an exporter for each signal. The package knows no data.
package sharedexporter

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/callbraid/callbraid/internal/componentkit/ownlog"
)

// Exporter is one exporter for all signals of a configuration.
type Exporter interface {
	// Start is called at most once, when the first signal starts.
	Start(context.Context, component.Host) error
	// Shutdown is called once, when the last signal is shut down: queues of all signals can still be written before. It is
	// also called without Start, and after a Start that failed.
	Shutdown(context.Context) error
}

// Exporters has the exporters of a factory that are not shut down, one for each configuration.
type Exporters[E Exporter] struct {
	// Make makes the exporter of a configuration.
	Make func(exporter.Settings, component.Config) (E, error)

	mu   sync.Mutex
	made map[component.Config]*shared[E]
}

// shared is an exporter and its life.
type shared[E Exporter] struct {
	exporter E
	starting sync.Once
	startErr error
	// signals is the number of those that were made and not shut down. The mutex of Exporters guards it.
	signals int
}

// Signal is one of the signals of an exporter. Its methods Start and Shutdown are those for the Collector.
type Signal[E Exporter] struct {
	Exporter E

	shared   *shared[E]
	stopping sync.Once
	all      *Exporters[E]
	config   component.Config
}

// Signal returns a further signal of the exporter of a configuration, which is a pointer. The first signal makes the exporter.
func (all *Exporters[E]) Signal(set exporter.Settings, config component.Config) (*Signal[E], error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s, ok := all.made[config]
	if !ok {
		set.Logger = ownlog.OfAllSignals(set.Logger)
		made, err := all.Make(set, config)
		if err != nil {
			return nil, err
		}
		s = &shared[E]{exporter: made}
		if all.made == nil {
			all.made = map[component.Config]*shared[E]{}
		}
		all.made[config] = s
	}
	s.signals++
	return &Signal[E]{Exporter: s.exporter, shared: s, all: all, config: config}, nil
}

// Len returns the number of exporters that are not shut down.
func (all *Exporters[E]) Len() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.made)
}

// Start starts the exporter, if no other signal has. It returns the error of the exporter's start to each signal.
func (s *Signal[E]) Start(ctx context.Context, host component.Host) error {
	s.shared.starting.Do(func() { s.shared.startErr = s.Exporter.Start(ctx, host) })
	return s.shared.startErr
}

// Shutdown shuts the exporter down, if it is the last signal's. It is safe twice, and without a start.
func (s *Signal[E]) Shutdown(ctx context.Context) (err error) {
	s.stopping.Do(func() {
		if s.leave() {
			err = s.Exporter.Shutdown(ctx)
		}
	})
	return err
}

// leave reports whether no other signal has the exporter. Then the next signal of the configuration makes another one.
func (s *Signal[E]) leave() (isLast bool) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.shared.signals--; s.shared.signals > 0 {
		return false
	}
	delete(s.all.made, s.config)
	return true
}
