// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// die is an error, the HQ's or the agent's own.
func (r *run) die(reason string) {
	dies := false
	r.change(func(l *life) { dies = l.die(reason) })
	if dies {
		r.bury(reason)
	}
}

// bury is what an agent does that has met an error. It says so to the HQ; for the
// program tracing is over. When a heartbeat interval has passed it closes its data
// connections, each when its sender has sent what it is at, then the control
// connection. What else has not been sent by then is lost. An HQ that never reads
// what is being sent lets the program hang at its end.
func (r *run) bury(reason string) {
	r.background.Add(1)
	go func() {
		defer r.background.Done()
		r.writeControl(bytefrog.ErrorMessage{Text: reason})
		r.beatNow() // mode X
		settled := time.AfterFunc(r.options.Settle, func() {
			r.awaitThaw()
			r.change(func(l *life) { l.killSettled() })
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
		r.change(func(l *life) { l.buried() })
	}()
}

// awaitSenders waits until no sender is at work, or the run is over.
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
