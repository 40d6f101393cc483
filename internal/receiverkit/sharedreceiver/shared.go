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

	"github.com/callbraid/callbraid/internal/componentkit/ownlog"
)

// Shared has the receivers of one factory from their creation to their shutdown. The Collector creates a receiver for
// each signal, with the same configuration, and gets the same one. The methods are the functions of a factory.
type Shared struct {
	create func(receiver.Settings, component.Config) (Receiver, error)

	mu        sync.Mutex
	instances map[component.Config]*instance
}

// New shares the receivers that create returns. A configuration must be a pointer, because it identifies its receiver.
func New(create func(receiver.Settings, component.Config) (Receiver, error)) *Shared {
	return &Shared{create: create, instances: map[component.Config]*instance{}}
}

// CreateTraces returns the receiver of a configuration, which sends traces to next.
func (s *Shared) CreateTraces(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Traces) (receiver.Traces, error) {
	return s.instance(settings, config, func(signals *Signals) { signals.Traces = next })
}

// CreateLogs returns the receiver of a configuration, which sends logs to next.
func (s *Shared) CreateLogs(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
	return s.instance(settings, config, func(signals *Signals) { signals.Logs = next })
}

// CreateMetrics returns the receiver of a configuration, which sends metrics to next.
func (s *Shared) CreateMetrics(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return s.instance(settings, config, func(signals *Signals) { signals.Metrics = next })
}

// CreateProfiles returns the receiver of a configuration, which sends profiles to next.
func (s *Shared) CreateProfiles(_ context.Context, settings receiver.Settings, config component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
	return s.instance(settings, config, func(signals *Signals) { signals.Profiles = next })
}

// instance returns the instance of a configuration. setNext sets the first consumer of a signal.
func (s *Shared) instance(settings receiver.Settings, config component.Config, setNext func(*Signals)) (component.Component, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.instances[config]
	if !ok {
		settings.Logger = ownlog.OfAllSignals(settings.Logger)
		r, err := s.create(settings, config)
		if err != nil {
			return nil, err
		}
		i = &instance{receiver: r, forget: func() { s.forget(config) }}
		s.instances[config] = i
	}
	setNext(&i.next)
	return i, nil
}

func (s *Shared) forget(config component.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.instances, config)
}
