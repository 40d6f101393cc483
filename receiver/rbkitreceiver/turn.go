// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import "context"

// turn is a lock that nobody waits for longer than their context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the lock. The error is why the context has ended; without one, give has to
// be called.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }
