// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"context"
	"net"
	"time"
)

// wake ends reads and writes of a connection when a context ends.
type wake struct {
	stop func() bool
	ran  chan struct{}
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// set has the end of ctx end what waits on the connection, until unset.
func (w *wake) set(ctx context.Context, conn net.Conn) {
	if ctx.Done() == nil {
		return
	}
	ran := make(chan struct{})
	w.ran = ran
	w.stop = context.AfterFunc(ctx, func() {
		defer close(ran)
		// An error leaves the deadline that is set, and the wait ends with that one.
		_ = conn.SetDeadline(past)
	})
}

// unset waits for what set began, so that it touches no later deadline.
func (w *wake) unset() {
	if w.stop != nil && !w.stop() {
		<-w.ran
	}
	w.stop, w.ran = nil, nil
}
