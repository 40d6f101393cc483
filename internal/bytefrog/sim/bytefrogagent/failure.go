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
