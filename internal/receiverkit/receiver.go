// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
)

// Protocol is the part of a receiver that knows its peers.
type Protocol interface {
	// Start opens the outputs of the run, connects or listens, and starts goroutines with
	// Run.Go. An error ends the run, so Start returns one only before it starts goroutines
	// that don't end with Run.Serving. The context ends before the receiver does.
	Start(ctx context.Context, run *Run) error
	// Stop begins to disconnect from all peers; Run.Serving has ended. It doesn't wait for
	// peers. It is called once, only after a Start without error.
	Stop()
	// Close frees everything that newReceiver and Start made, after all goroutines have ended or their
	// time is over. It is called once, with or without Start.
	Close(ctx context.Context) error
}

// Receiver is a receiver of a Protocol, for all signals of one configuration.
type Receiver struct {
	Kit      *Kit
	Protocol Protocol
	// run is nil before Start, and after a failed Start.
	run *Run
}

// Share returns the receivers of a factory; C is the receiver's Config.
func Share[C any](newReceiver func(receiver.Settings, *C) (*Receiver, error)) *sharedreceiver.Shared {
	return sharedreceiver.New(func(settings receiver.Settings, config component.Config) (sharedreceiver.Receiver, error) {
		return newReceiver(settings, any(config).(*C))
	})
}

// Start starts the protocol.
func (r *Receiver) Start(ctx context.Context, host component.Host, next sharedreceiver.Signals) error {
	run := r.Kit.NewRun(ctx, host, next)
	if err := r.Protocol.Start(ctx, run); err != nil {
		run.Expire()
		run.Finish()
		return err
	}
	r.run = run
	r.Kit.Health.Start(host)
	return nil
}

// Shutdown disconnects peers and delivers the remaining data, for at most shutdown_timeout.
// Outputs then drop and count the rest.
func (r *Receiver) Shutdown(ctx context.Context) error {
	var late error
	if r.run != nil {
		late = r.stop(ctx)
	}
	return errors.Join(late, r.Protocol.Close(ctx))
}

func (r *Receiver) stop(ctx context.Context) error {
	run := r.run
	r.Kit.Health.Stop()
	run.stopServing()
	peersLate := time.AfterFunc(r.Kit.PeerTime, func() { run.stopLeaving(ErrPeerTime) })
	defer peersLate.Stop()
	r.Protocol.Stop()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		run.Finish()
	}()
	if !handover.Finish(ctx, finished, r.Kit.config.ShutdownTimeout, r.Kit.Overtime, run.Expire) {
		open := "a pipeline or a peer has not returned"
		if r.Kit.StillOpen != nil {
			open = "still open are " + r.Kit.StillOpen()
		}
		return fmt.Errorf("expected the shutdown to end within shutdown_timeout (%v) and %v: %s", r.Kit.config.ShutdownTimeout, r.Kit.Overtime, open)
	}
	return nil
}
