// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// NewFactory makes the factory of the receiver.
func NewFactory() receiver.Factory {
	s := &shared{receivers: map[*Config]*liveReceiver{}}
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return createDefaultConfig() },
		receiver.WithTraces(s.createTraces, metadata.TracesStability),
		receiver.WithLogs(s.createLogs, metadata.LogsStability),
		receiver.WithMetrics(s.createMetrics, metadata.MetricsStability),
	)
}

// shared has the receivers that were made and not shut down. The collector asks
// for a receiver for each signal, with the same configuration: there is one.
type shared struct {
	mu        sync.Mutex
	receivers map[*Config]*liveReceiver
}

func (s *shared) receiver(settings receiver.Settings, config component.Config) (*liveReceiver, error) {
	c := config.(*Config)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.receivers[c]; ok {
		return r, nil
	}
	settings.Logger = settings.Logger.WithOptions(zap.WrapCore(forAllSignals))
	r, err := newReceiver(settings, c)
	if err != nil {
		return nil, err
	}
	r.forget = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.receivers, c)
	}
	s.receivers[c] = r
	return r, nil
}

// forAllSignals makes the core of a logger say nothing of the signal that a receiver
// was made for first: it is for all.
func forAllSignals(core zapcore.Core) zapcore.Core {
	if c, ok := core.(interface {
		DropInjectedAttributes(names ...string) zapcore.Core
	}); ok {
		return c.DropInjectedAttributes("otelcol.signal")
	}
	return core
}

func (s *shared) createTraces(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Traces) (receiver.Traces, error) {
	r, err := s.receiver(settings, config)
	if err != nil {
		return nil, err
	}
	r.traces = next
	return r, nil
}

func (s *shared) createLogs(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
	r, err := s.receiver(settings, config)
	if err != nil {
		return nil, err
	}
	r.logs = next
	return r, nil
}

func (s *shared) createMetrics(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	r, err := s.receiver(settings, config)
	if err != nil {
		return nil, err
	}
	r.metrics = next
	return r, nil
}
