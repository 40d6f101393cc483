// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sharedreceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Shared has the receivers of one factory that were made and not shut down. The
// collector asks for a receiver for each signal, with the same configuration: there is
// one. Its methods are what a factory is made of.
type Shared struct {
	create func(receiver.Settings, component.Config) (Receiver, error)

	mu        sync.Mutex
	instances map[component.Config]*instance
}

// New shares the receivers that create makes. A configuration has to be a pointer: it
// is what a receiver is known by.
func New(create func(receiver.Settings, component.Config) (Receiver, error)) *Shared {
	return &Shared{create: create, instances: map[component.Config]*instance{}}
}

// CreateTraces gives the receiver of a configuration, which hands on traces to next.
func (s *Shared) CreateTraces(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Traces) (receiver.Traces, error) {
	return s.instance(settings, config, func(signals *Signals) { signals.Traces = next })
}

// CreateLogs gives the receiver of a configuration, which hands on logs to next.
func (s *Shared) CreateLogs(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
	return s.instance(settings, config, func(signals *Signals) { signals.Logs = next })
}

// CreateMetrics gives the receiver of a configuration, which hands on metrics to next.
func (s *Shared) CreateMetrics(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return s.instance(settings, config, func(signals *Signals) { signals.Metrics = next })
}

// CreateProfiles gives the receiver of a configuration, which hands on profiles to next.
func (s *Shared) CreateProfiles(_ context.Context, settings receiver.Settings, config component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
	return s.instance(settings, config, func(signals *Signals) { signals.Profiles = next })
}

// instance gives the instance of a configuration, after use has said where a signal
// goes.
func (s *Shared) instance(settings receiver.Settings, config component.Config, use func(*Signals)) (component.Component, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.instances[config]
	if !ok {
		settings.Logger = settings.Logger.WithOptions(zap.WrapCore(forAllSignals))
		r, err := s.create(settings, config)
		if err != nil {
			return nil, err
		}
		i = &instance{receiver: r, forget: func() { s.forget(config) }}
		s.instances[config] = i
	}
	use(&i.next)
	return i, nil
}

func (s *Shared) forget(config component.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.instances, config)
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
