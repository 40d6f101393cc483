// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// writeControl sends a message on the control connection. It ignores errors: readControl notices the loss after the
// last orders of the HQ.
func (r *run) writeControl(m bytefrog.Message) {
	r.writeNow(func() bytefrog.Message { return m })
}

// writeNow is writeControl for a message about the present state. A killed process sends nothing more.
func (r *run) writeNow(message func() bytefrog.Message) {
	r.awaitThaw()
	r.controlLock.Lock()
	defer r.controlLock.Unlock()
	if r.isKilled() {
		return
	}
	r.control.Write(message().AppendTo(nil)) // readControl notices an error
}

// sendHeartbeats sends heartbeats at the configured interval. With an interval of 0 there are only the heartbeats at
// the begin and the end.
func (r *run) sendHeartbeats() {
	defer r.background.Done()
	if r.configuration.HeartbeatInterval <= 0 {
		return
	}
	ticker := time.NewTicker(r.configuration.HeartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.awaitThaw()
			r.sendHeartbeat()
		case <-r.final:
			return
		}
	}
}

// sendHeartbeat sends one heartbeat. It reads the mode at the time of writing, so that modes arrive in order.
func (r *run) sendHeartbeat() {
	r.heartbeats.Add(1)
	r.writeNow(func() bytefrog.Message {
		r.mu.Lock()
		defer r.mu.Unlock()
		return bytefrog.Heartbeat{Mode: r.life.mode(), SendBuffers: uint16(min(len(r.queue), 1<<16-1))}
	})
}
