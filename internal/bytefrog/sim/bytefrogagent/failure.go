// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// fail handles an error of the HQ or of the agent itself.
func (r *run) fail(reason string) {
	fails := false
	r.change(func(l *life) { fails = l.fail(reason) })
	if fails {
		r.endAfterError(reason)
	}
}

// endAfterError ends the agent after an error. It sends error to the HQ; for the program tracing is over. After a
// heartbeat interval it closes each data connection when its sender has finished the current buffer, then the control
// connection. All other unsent data are lost. If the HQ never reads, the program hangs at its end.
func (r *run) endAfterError(reason string) {
	r.background.Add(1)
	go func() {
		defer r.background.Done()
		r.writeControl(bytefrog.ErrorMessage{Text: reason})
		r.sendHeartbeat() // mode X
		settled := time.AfterFunc(r.options.Settle, func() {
			r.awaitThaw()
			r.change(func(l *life) { l.errorSettled() })
		})
		defer settled.Stop()
		r.sleep(r.configuration.HeartbeatInterval)
		r.awaitThaw()
		close(r.dead)
		stuck := time.AfterFunc(r.options.StartTimeout, func() {
			r.change(func(l *life) {
				if !l.final() {
					l.hang(reason + ", and the HQ does not read the data")
				}
			})
		})
		defer stuck.Stop()
		r.awaitSenders()
		r.change(func(l *life) { l.closed() })
	}()
}

// awaitSenders waits until all senders have ended, or the run is over.
func (r *run) awaitSenders() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.sending > 0 && !r.life.final() {
		r.changed.Wait()
	}
}

// awaitThaw waits while the process is frozen.
func (r *run) awaitThaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.life.frozen && !r.life.final() {
		r.changed.Wait()
	}
}

// sleep waits for d, or until the run is over.
func (r *run) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.final:
	}
}
