// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/greys"
)

// A reset of another client takes what our commands need out of all classes, and the console says
// nothing of it: commands go on, and tell of no call any more. The numbers of sessions say that
// another client has connected, since each connection has the next one. Where nothing is told
// from then on that was told before, commands are asked again.

// sessionCount compares the numbers of sessions with how often we have connected. It is for
// the goroutine that follows the server.
type sessionCount struct {
	known bool
	// others is how many sessions were not ours until now, at most.
	others int64
}

// saw compares the number of a session of ours. Before is how many of our connections surely have
// lower numbers, and after how many may have: other commands connect meanwhile. It returns how many
// sessions of others are new, at least.
func (c *sessionCount) saw(session, before, after int64) (others int64) {
	if c.known {
		others = max(0, session-after-c.others)
	}
	if most := session - before - 1; !c.known || others > 0 || most < c.others {
		c.others = most
	}
	c.known = true
	return others
}

// suspect is told that another client has connected.
func (a *attending) suspect(others int64) {
	if others == 0 {
		return
	}
	a.server.env.telemetry.foreignSessions(others)
	if a.suspectedAt.IsZero() {
		a.suspectedAt = a.server.env.now()
	}
}

var errOthers = errors.New("another client may have reset the server's classes")

// checkSuspicion asks commands again of which another client has taken the code out of classes,
// as far as their silence says so.
func (a *attending) checkSuspicion(now time.Time) {
	if a.suspectedAt.IsZero() {
		return
	}
	var running []*task
	var cycle time.Duration
	told := false
	a.process.mu.Lock()
	for _, t := range a.process.tasks {
		if t.run == nil || !t.kind.enhances() || t.run.began.After(a.suspectedAt) || t.run.lastCall.IsZero() {
			continue
		}
		running = append(running, t)
		cycle = max(cycle, t.cycle)
		// A cycle that had begun before may tell of calls of its begin.
		told = told || t.run.lastCall.After(a.suspectedAt.Add(t.cycle))
	}
	a.process.mu.Unlock()
	silent := now.Sub(a.suspectedAt) > 2*cycle+a.server.env.config.StateInterval
	switch {
	case len(running) == 0 || told:
		a.suspectedAt = time.Time{} // a reset is for all classes, so there was none
	case silent:
		a.suspectedAt = time.Time{}
		a.server.env.telemetry.foreignReset()
		a.server.logger.Warn("Another client has connected to the server, and since then no command tells of a call: its reset may have taken their code out of classes. They are asked again; share a server with nobody",
			zap.Int("commands", len(running)))
		for _, t := range running {
			t.run.end(errOthers)
		}
	}
}

// notesCall notes when calls were told of last. The process's lock is held.
func (r *run) notesCall(reply greys.Reply, now time.Time) {
	switch reply := reply.(type) {
	case *greys.Statistics:
		for i := range reply.Methods {
			if reply.Methods[i].Calls > 0 {
				r.lastCall = now
				return
			}
		}
	case *greys.Tree, *greys.CallStack, *greys.Record:
		r.lastCall = now
	}
}
