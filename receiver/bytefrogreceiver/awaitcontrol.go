// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import "time"

// controlPatience is how long a batch waits for the control connection. Its reader waits for
// nothing, so only the scheduler delays it.
const controlPatience = 250 * time.Millisecond

// awaitControl waits until the receiver has handled all that has arrived on the control connection:
// a batch must carry a data break that the agent sent before its events.
func (r *run) awaitControl() {
	if isClosed(r.control.ended) || r.control.in.CaughtUp() {
		return
	}
	timer := time.NewTimer(controlPatience)
	defer timer.Stop()
	for {
		changed := r.control.idle.Next()
		if r.control.in.CaughtUp() {
			return
		}
		select {
		case <-changed:
		case <-r.control.ended:
			return
		case <-timer.C:
			return
		}
	}
}
