// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
)

// shared has the running exporters of one factory: one for each configuration, for all signals
// that have a pipeline.
type shared struct {
	mu   sync.Mutex
	made map[*Config]*fileExporter
}

// exporter is that of a configuration.
func (s *shared) exporter(set exporter.Settings, cfg *Config) (*fileExporter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.made[cfg]; ok {
		return e, nil
	}
	e, err := newFileExporter(set, cfg, func() { s.forget(cfg) })
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

// signal is one of the signals that share an exporter. The first that starts opens the file, and
// the last that is shut down closes it, so the queues of all signals can still be written.
type signal struct {
	*fileExporter
	stopping sync.Once
}

func (e *fileExporter) newSignal() *signal {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.signals++
	return &signal{fileExporter: e}
}

func (s *signal) start(context.Context, component.Host) error {
	s.starting.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.startErr = s.file.Open()
	})
	return s.startErr
}

// shutdown is safe twice, and without a start.
func (s *signal) shutdown(context.Context) (err error) {
	s.stopping.Do(func() {
		s.mu.Lock()
		s.signals--
		last := s.signals == 0
		if last {
			err = errors.Join(err, s.file.Close())
		}
		s.mu.Unlock()
		if last {
			s.telemetry.Shutdown()
			s.forget()
		}
	})
	return err
}
