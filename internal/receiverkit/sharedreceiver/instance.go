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
	// Start starts what the signals of next need. It is called once at most. The
	// context is over before the receiver is.
	Start(ctx context.Context, host component.Host, next Signals) error
	// Shutdown is called once at most, without Start, too, and after one that failed.
	Shutdown(ctx context.Context) error
}

// Signals are what the pipelines begin with; nil: no pipeline takes that signal.
type Signals struct {
	Traces   consumer.Traces
	Logs     consumer.Logs
	Metrics  consumer.Metrics
	Profiles xconsumer.Profiles
}

// instance is what the collector gets for each signal of a configuration.
type instance struct {
	receiver Receiver
	// next is set before Start.
	next Signals
	// forget takes the instance out of those that are shared.
	forget func()

	// hosts are those of all signals that were started.
	hosts hosts

	starting, stopping    sync.Once
	startError, stopError error
}

// Once makes of a receiver what the collector gets, without a factory: what is started
// once and shut down once, however often it is asked to.
func Once(r Receiver, next Signals) component.Component {
	return &instance{receiver: r, next: next, forget: func() {}}
}

// Start starts the receiver, once; every call has the same result. The statuses that it reports
// are those of each signal.
func (i *instance) Start(ctx context.Context, host component.Host) error {
	i.hosts.add(host)
	i.starting.Do(func() { i.startError = i.receiver.Start(ctx, sharedHost{host, &i.hosts}, i.next) })
	return i.startError
}

// Shutdown shuts the receiver down, once; every call has the same result. The same
// configuration makes another receiver then.
func (i *instance) Shutdown(ctx context.Context) error {
	i.stopping.Do(func() {
		defer i.forget()
		i.stopError = i.receiver.Shutdown(ctx)
	})
	return i.stopError
}
