// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"sync"

	"go.opentelemetry.io/collector/exporter"

	"github.com/callbraid/callbraid/internal/componentkit/ownlog"
)

// shared has the flame graphs of a factory that are not shut down: one for each configuration,
// for all its signals.
type shared struct {
	mu   sync.Mutex
	made map[*Config]*flameGraph
}

// graph returns the flame graph of a configuration.
func (s *shared) graph(set exporter.Settings, cfg *Config) (*flameGraph, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, ok := s.made[cfg]; ok {
		g.users.Add(1)
		return g, nil
	}
	set.Logger = ownlog.OfAllSignals(set.Logger)
	g, err := newFlameGraph(set, cfg, func() { s.forget(cfg) })
	if err != nil {
		return nil, err
	}
	g.users.Add(1)
	s.made[cfg] = g
	return g, nil
}

func (s *shared) forget(cfg *Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.made, cfg)
}
