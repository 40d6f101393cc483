// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"context"
	"net"
	"time"
)

// interrupter ends reads and writes of a connection when a context ends.
type interrupter struct {
	stop func() bool
	ran  chan struct{}
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// set makes the end of ctx end pending reads and writes of the connection, until unset.
func (w *interrupter) set(ctx context.Context, conn net.Conn) {
	if ctx.Done() == nil {
		return
	}
	ran := make(chan struct{})
	w.ran = ran
	w.stop = context.AfterFunc(ctx, func() {
		defer close(ran)
		// If this fails, the previous deadline stays, and the wait ends at that one.
		_ = conn.SetDeadline(past)
	})
}

// unset waits for the function that set registered, if it runs, so that it does not change a later deadline.
func (w *interrupter) unset() {
	if w.stop != nil && !w.stop() {
		<-w.ran
	}
	w.stop, w.ran = nil, nil
}
