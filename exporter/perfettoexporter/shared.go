// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/callbraid/callbraid/internal/componentkit/ownlog"
)

// shared has the exporters of a factory that are not shut down: one for each configuration, for all its signals, because
// all of them are in one file.
type shared struct {
	mu   sync.Mutex
	made map[*Config]*perfetto
}

// exporter returns the exporter of a configuration.
func (s *shared) exporter(set exporter.Settings, cfg *Config) (*perfetto, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.made[cfg]; ok {
		return e, nil
	}
	set.Logger = ownlog.OfAllSignals(set.Logger)
	e, err := newPerfetto(set, cfg, func() { s.forget(cfg) })
	if err != nil {
		return nil, err
	}
	s.made[cfg] = e
	return e, nil
}

func (s *shared) forget(cfg *Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.made, cfg)
}

// signal is one of the signals that share an exporter. The first that starts opens the file, and the last that is shut
// down closes it.
type signal struct {
	*perfetto
	stopping sync.Once
}

func (e *perfetto) newSignal() *signal {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.signals++
	return &signal{perfetto: e}
}

func (s *signal) start(context.Context, component.Host) error {
	s.starting.Do(func() { s.startErr = s.open() })
	return s.startErr
}

// shutdown is safe twice, and without a start.
func (s *signal) shutdown(context.Context) (err error) {
	s.stopping.Do(func() {
		s.mu.Lock()
		s.signals--
		last := s.signals == 0
		s.mu.Unlock()
		if last {
			err = s.close()
			s.forget()
		}
	})
	return err
}
