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
	ready     bool // it has its buffers, and takes error
	listening bool // its buffers listen to its mode: it holds events back if it is suspended
	idle      bool // it traces nothing and has no data connections: it was turned away
	safe      bool // dying, and the control connection lived long enough for that
	suspended bool // by the HQ
	// deaf says that its heartbeats show it suspended while events flow: suspend came before
	// its buffers listened to its mode.
	deaf bool
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

// shownSuspended reports whether heartbeats show the agent suspended.
func (l *life) shownSuspended() bool { return l.suspended || l.deaf }

// suspend is the order to collect nothing. When it comes depends on how far the agent is:
//
//   - Before start, the agent begins with the mode suspended, but events flow.
//   - Between start and its buffers, it dies of it, and the program hangs.
//   - Until its buffers listen to its mode, it reports a break, but events flow.
//   - Afterwards it holds events back.
//
// A second suspend in the mode suspended is an error, at which it ends tracing. So is one while
// the program is paused, or where nothing is traced. broken says that it reports a break now.
func (l *life) suspend() (dies, broken bool) {
	switch {
	case l.state == waiting:
		l.deaf = true
	case l.state == tracing && !l.ready && !l.deaf:
		l.hang("the HQ ordered suspend before the agent has its buffers")
	case l.state == tracing && (l.shownSuspended() || l.paused):
		return l.die("suspend control message is only valid when tracing or initializing"), false
	case l.state == tracing && !l.listening:
		l.deaf = true
		return false, true
	case l.state == tracing:
		l.suspended = true
		l.suspensions++
	case l.state == draining:
		return l.die("the HQ ordered suspend where nothing was traced"), false
	}
	return false, false
}

// prepared is that the agent has its buffers, and opens its data connections next.
func (l *life) prepared() { l.ready = true }

// listens is that the agent's buffers listen to its mode from now on.
func (l *life) listens() { l.listening = true }

// unsuspend is the order to collect calls again. It is an error where none are held back.
func (l *life) unsuspend() (dies bool) {
	if l.state == tracing && !l.shownSuspended() {
		return l.die("unsuspend control message is only valid when suspended or initializing")
	}
	l.suspended, l.deaf = false, false
	return false
}

// pause is the order to halt the program. It is an error unless the program is traced.
func (l *life) pause() (dies bool) {
	if l.state == tracing && (l.paused || l.shownSuspended()) {
		return l.die("pause control message is only valid when tracing")
	}
	l.paused = l.state == tracing
	return false
}

// unpause is the order to let the program go on. It is an error unless it is paused.
func (l *life) unpause() (dies bool) {
	if l.state == tracing && !l.paused {
		return l.die("unpause control message is only valid when paused")
	}
	l.paused = false
	return false
}

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
			l.hang(l.reason + ", and at the same time " + reason)
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
	case l.shownSuspended():
		return bytefrog.ModeSuspended
	default:
		return bytefrog.ModeTracing
	}
}
