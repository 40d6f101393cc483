// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
)

// Run is the time of a receiver from Start to the end of Shutdown.
//
// Its contexts end in this order. Serving ends when the shutdown begins. Leaving ends, with
// ErrPeerTime, when the time to disconnect peers is over. Delivering ends when
// shutdown_timeout is over. Each may end early if a later one ends.
type Run struct {
	*Kit
	Serving, Leaving, Delivering context.Context
	// Collector has the extensions.
	Collector component.Host
	// Next has the consumers of the pipelines.
	Next sharedreceiver.Signals
	// Memory has the accounts of peers and queues in the memory budget of the process.
	Memory *budget.Group
	// Agents are the extensions that show and command peers. The receiver registers its peers there.
	Agents agentcontrol.Directories

	stopServing, stopDelivering context.CancelFunc
	stopLeaving                 context.CancelCauseFunc
	goroutines                  sync.WaitGroup
	// outputs deliver the remaining data, each one in a goroutine of its own.
	outputs []func()
}

// ErrPeerTime is the cause for which Run.Leaving ends.
var ErrPeerTime = errors.New("the time to disconnect peers at a shutdown is over")

// NewRun returns a run. Receiver calls it, and tests that need no Start.
func (k *Kit) NewRun(ctx context.Context, host component.Host, next sharedreceiver.Signals) *Run {
	r := &Run{Kit: k, Collector: host, Next: next, Memory: budget.Of(host).Group(k.ID), Agents: agentcontrol.Of(host)}
	// The context of Start ends before the receiver does.
	r.Delivering, r.stopDelivering = context.WithCancel(context.WithoutCancel(ctx))
	r.Leaving, r.stopLeaving = context.WithCancelCause(r.Delivering)
	r.Serving, r.stopServing = context.WithCancel(r.Leaving)
	return r
}

// Go starts a goroutine. The shutdown waits for its end before it closes the outputs.
func (r *Run) Go(do func()) { r.goroutines.Go(do) }

// IsStopping reports whether the shutdown has begun.
func (r *Run) IsStopping() bool { return r.Serving.Err() != nil }

// HandoverSettings returns the settings that hand-overs of all signals have in common.
func (r *Run) HandoverSettings() handover.Settings {
	return handover.Settings{
		Context: r.Delivering, Observer: r.observer, Format: r.format, Logger: r.Logger,
		Retry: r.config.Retry, Now: r.Now, Memory: r.Memory,
	}
}

// Finish waits for all goroutines, closes the outputs, and waits until they have delivered
// or dropped all data.
func (r *Run) Finish() {
	r.goroutines.Wait()
	var closing sync.WaitGroup
	for _, output := range r.outputs {
		closing.Go(output)
	}
	closing.Wait()
}

// Expire ends all contexts of the run: outputs drop data that the pipeline has not accepted.
func (r *Run) Expire() { r.stopDelivering() }
