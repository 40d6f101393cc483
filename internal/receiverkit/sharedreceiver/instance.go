// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sharedreceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
)

// Receiver is one receiver for all signals of a configuration.
type Receiver interface {
	// Start starts the receiver for the signals of next. It is called at most once. The context ends before the
	// receiver's Shutdown.
	Start(ctx context.Context, host component.Host, next Signals) error
	// Shutdown is called at most once, also without Start, and after a Start that failed.
	Shutdown(ctx context.Context) error
}

// Signals has the first consumer of each signal's pipeline; nil: the signal has no pipeline.
type Signals struct {
	Traces   consumer.Traces
	Logs     consumer.Logs
	Metrics  consumer.Metrics
	Profiles xconsumer.Profiles
}

// instance is the component that the Collector gets for each signal of a configuration.
type instance struct {
	receiver Receiver
	// next is set before Start.
	next Signals
	// forget removes the instance from the shared ones.
	forget func()

	// hosts has the hosts of all started signals.
	hosts hosts

	starting, stopping    sync.Once
	startError, stopError error
}

// Once returns a component for a receiver without a factory. Further calls of its Start and Shutdown do nothing.
func Once(r Receiver, next Signals) component.Component {
	return &instance{receiver: r, next: next, forget: func() {}}
}

// Start starts the receiver once; every call has the same result. Each signal's host gets the receiver's statuses.
func (i *instance) Start(ctx context.Context, host component.Host) error {
	i.hosts.connect(host)
	i.starting.Do(func() { i.startError = i.receiver.Start(ctx, sharedHost{host, &i.hosts}, i.next) })
	return i.startError
}

// Shutdown shuts the receiver down once; every call has the same result. Afterwards the same configuration makes a new
// receiver.
func (i *instance) Shutdown(ctx context.Context) error {
	i.stopping.Do(func() {
		defer i.forget()
		i.stopError = i.receiver.Shutdown(ctx)
	})
	return i.stopError
}
