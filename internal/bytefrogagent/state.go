// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import "github.com/callbraid/callbraid/internal/bytefrog"

// state is where an agent stands in its life.
type state uint8

const (
	waiting  state = iota // connected, in front of the program's main
	tracing               // the program runs and is traced; suspended and paused are flags within
	draining              // nothing more is collected, what was collected is being sent
	orphaned              // the control connection is lost, the data connections are not
	dying                 // told error: it runs on untraced; the agent closes its connections soon
	over                  // the connections are closed, the program runs on untraced or is dead
	hung                  // the program's threads wait for a buffer that never comes
	finished              // everything was sent and closed by the agent itself
)

// life is the agent's state machine: one method for each thing that can happen to
// an agent. It knows no connection. The caller holds the lock of the run.
type life struct {
	state     state
	frozen    bool // its process is stopped
	ready     bool // it has its buffers, and takes suspend and error
	idle      bool // it traces nothing and has no data connections: it was turned away
	safe      bool // dying, and the control connection lived long enough for that
	suspended bool // by the HQ
	// suspensions counts how often; answered is for which of them the program has
	// reported its break.
	suspensions, answered int
	paused                bool // by the HQ
	dataLost              bool // a data connection was lost; the program is safe once that has settled
	ended                 bool // the program reached its own end
	ordered               bool // the HQ ordered stop: it may leave when it likes
	settled               bool // the data connections outlived the control connection for a while
	// unsent is the number of buffers that were handed to the senders and not sent.
	unsent int

	outcome Outcome
	reason  string
}

// final reports whether nothing can change any more.
func (l *life) final() bool { return l.state >= over }

// collecting reports whether calls are being collected.
func (l *life) collecting() bool {
	return l.state == tracing && !l.suspended && !l.paused && !l.frozen && !l.idle
}

// start is the order to let the program run.
func (l *life) start() {
	if l.state == waiting {
		l.state = tracing
	}
}

// suspend is the order to collect nothing. Before start the agent forgets it. Between
// start and its first data connection it makes its buffers: an order that it can't
// obey then ends its tracing, but the buffers it has later don't know, and the program
// fills them. When it collects nothing any more it takes the order for an error.
func (l *life) suspend() (dies bool) {
	switch {
	case l.state == tracing && !l.ready:
		l.hang("the HQ ordered suspend before the agent has its buffers")
	case l.state == tracing && !l.suspended:
		l.suspended = true
		l.suspensions++
	case l.state == draining:
		return l.die("the HQ ordered suspend where nothing was traced")
	}
	return false
}

// prepared is that the agent has its buffers, and opens its data connections next.
func (l *life) prepared() { l.ready = true }

func (l *life) unsuspend() { l.suspended = false }

// pause is the order to halt the program.
func (l *life) pause() {
	if l.state == tracing {
		l.paused = true
	}
}

func (l *life) unpause() { l.paused = false }

// stop is the HQ's order to end tracing: what was collected is still sent.
func (l *life) stop() {
	const reason = "the HQ ordered stop"
	switch l.state {
	case waiting:
		l.hang(reason + " before start: the program waits in front of its main")
	case tracing, draining:
		l.state, l.ordered = draining, true
		l.outcome, l.reason = Untraced, reason
	}
}

// quit is the wish of the program's user to end it early, in order.
func (l *life) quit() {
	const reason = "the program was ended early by its user"
	switch l.state {
	case waiting:
		l.end(Untraced, reason)
	case tracing:
		l.state = draining
		l.outcome, l.reason = Untraced, reason
	}
}

// die is an error, the HQ's or the agent's own. Before start it ends the program.
// Afterwards it ends tracing, at once for the program; it reports true when the agent
// now says so itself, and closes its connections some time later.
func (l *life) die(reason string) (dies bool) {
	switch {
	case l.final() || l.state == dying:
		return false
	case l.state == waiting:
		l.end(Died, reason)
		return false
	case !l.ready:
		l.hang(reason + ", before the agent takes errors")
		return false
	}
	l.state, l.outcome, l.reason = dying, Untraced, reason
	if l.idle {
		l.outcome = Refused
	}
	return true
}

// killSettled is that the control connection outlived the agent's error by the time
// that makes its loss harmless.
func (l *life) killSettled() { l.safe = true }

// buried is that a dying agent has closed its connections.
func (l *life) buried() {
	if l.state == dying {
		l.end(l.outcome, l.reason)
	}
}

// programEnded is the program's own end.
func (l *life) programEnded() {
	l.ended = true
	if l.state == tracing {
		l.state = draining
		l.outcome, l.reason = Completed, "the program ended and everything was sent"
	}
}

// allSent is that the senders have sent what was collected and closed their
// connections.
func (l *life) allSent() {
	if l.dataLost {
		return
	}
	if l.state == draining || l.state == orphaned {
		l.state = finished
	}
}

const suspendedAndLeft = "the HQ suspended the agent and left"

// controlLost is the end of the control connection that the agent did not make.
// settle says that what it means is known only after a while.
func (l *life) controlLost(reason string) (settle bool) {
	switch l.state {
	case waiting:
		l.end(Died, reason+" before start")
	case dying:
		if !l.safe {
			l.hang(l.reason + ", and at once " + reason)
		}
	case tracing, draining:
		switch {
		case l.idle:
			l.end(Refused, reason)
		case l.suspended && l.unsent == 0:
			l.end(Untraced, suspendedAndLeft)
		case l.ordered || l.ended && l.unsent == 0:
			// The HQ may leave, or nothing is left that could be lost.
		case l.dataLost:
			l.hang(reason + " together with the data connections")
		default:
			if l.state == tracing {
				l.outcome, l.reason = Untraced, reason+", the data connections were read on"
			}
			l.state = orphaned
			settle = true
		}
	}
	return settle
}

// lostData is the end of a data connection that the agent did not make. settle says
// that the control connection must live on for a while before the program is safe.
func (l *life) lostData(reason string) (settle bool) {
	switch l.state {
	case tracing:
		settle = !l.dataLost
		l.dataLost = true
	case draining:
		if l.ended && l.unsent == 0 {
			return false
		}
		if l.ordered {
			l.end(Untraced, l.reason)
			return false
		}
		settle = !l.dataLost
		l.dataLost = true
	case orphaned:
		if !l.ended || l.unsent > 0 {
			l.hang("the control connection was lost, then " + reason)
		}
	}
	return settle
}

// dataLossSettled is that the control connection outlived a data connection by the
// time that makes it harmless.
func (l *life) dataLossSettled(reason string) {
	switch {
	case l.state == tracing && l.suspended && l.unsent == 0:
		l.end(Untraced, suspendedAndLeft)
	case l.state == tracing, l.state == draining:
		l.end(Untraced, reason+" and the control connection lived on")
	}
}

// orphanSettled is that the data connections outlived the control connection by the
// time after which they are not lost together.
func (l *life) orphanSettled() {
	l.settled = true
	l.releaseOrphan()
}

// handed is that the program handed a buffer to the senders.
func (l *life) handed() { l.unsent++ }

// sent is that the senders sent a buffer.
func (l *life) sent() {
	l.unsent--
	l.releaseOrphan()
}

// releaseOrphan ends tracing if the control connection is lost, and all that was
// collected was sent nevertheless.
func (l *life) releaseOrphan() {
	if l.state == orphaned && l.settled && l.unsent == 0 && !l.ended {
		l.end(Untraced, l.reason)
	}
}

// kill is the end of the program's process.
func (l *life) kill() {
	if !l.final() {
		l.end(Killed, "the traced program was killed")
	}
}

func (l *life) end(o Outcome, reason string) {
	l.state, l.outcome, l.reason = over, o, reason
}

func (l *life) hang(reason string) {
	l.state, l.outcome, l.reason = hung, Hung, reason
}

// mode is what a heartbeat says.
func (l *life) mode() bytefrog.Mode {
	switch {
	case l.state == waiting:
		return bytefrog.ModeInitializing
	case l.state != tracing:
		return bytefrog.ModeShuttingDown
	case l.paused:
		return bytefrog.ModePaused
	case l.suspended:
		return bytefrog.ModeSuspended
	default:
		return bytefrog.ModeTracing
	}
}
