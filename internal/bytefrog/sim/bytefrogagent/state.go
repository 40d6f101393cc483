// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import "github.com/callbraid/callbraid/internal/bytefrog"

// state is the state of an agent's life.
type state uint8

const (
	waiting  state = iota // connected, before the program's main function
	tracing               // the program runs and is traced; suspended and paused are flags within
	draining              // no more calls are collected, collected ones are being sent
	orphaned              // the control connection is lost, the data connections are not
	failing               // after an error: the program runs on untraced; the agent closes its connections soon
	over                  // the connections are closed, the program runs on untraced or has ended
	hung                  // the program's threads wait for a buffer that never comes
	finished              // everything was sent, and the agent itself closed the connections
)

// life is the agent's state machine, with one method for each event. It has no connections. The caller holds the lock
// of the run.
type life struct {
	state     state
	frozen    bool // its process is stopped
	ready     bool // it has its buffers, and accepts error
	listening bool // its buffers follow its mode: it holds events back if it is suspended
	idle      bool // it traces nothing and has no data connections: the HQ refused it
	safe      bool // failing, and the control connection has stayed open long enough for that
	suspended bool // by the HQ
	// deaf means that its heartbeats show it suspended while events flow: suspend arrived before its buffers followed
	// its mode.
	deaf bool
	// suspensions counts suspends. answered is the count up to which the program has reported breaks.
	suspensions, answered int
	paused                bool // by the HQ
	dataLost              bool // a data connection was lost; the program is safe after Options.Settle
	ended                 bool // the program reached its own end
	ordered               bool // the HQ ordered stop: it may disconnect
	settled               bool // the data connections have stayed open for Options.Settle after the control connection
	// unsent is the number of buffers that were queued and not sent yet.
	unsent int

	outcome Outcome
	reason  string
}

// final reports whether the state cannot change any more.
func (l *life) final() bool { return l.state >= over }

// collecting reports whether calls are being collected.
func (l *life) collecting() bool {
	return l.state == tracing && !l.suspended && !l.paused && !l.frozen && !l.idle
}

// start is the order to run the program.
func (l *life) start() {
	if l.state == waiting {
		l.state = tracing
	}
}

// shownSuspended reports whether heartbeats show the agent suspended.
func (l *life) shownSuspended() bool { return l.suspended || l.deaf }

// suspend is the order to collect nothing. Its effect depends on the state of the agent:
//
//   - Before start, the agent begins with the mode suspended, but events flow.
//   - Between start and its buffers, it fails, and the program hangs.
//   - Until its buffers follow its mode, it reports a break, but events flow.
//   - Afterwards it holds events back.
//
// A second suspend in the mode suspended is an error that ends tracing. So is one while the program is paused, or while
// the agent is draining. broken means that it reports a break now.
func (l *life) suspend() (fails, broken bool) {
	switch {
	case l.state == waiting:
		l.deaf = true
	case l.state == tracing && !l.ready && !l.deaf:
		l.hang("the HQ ordered suspend before the agent has its buffers")
	case l.state == tracing && (l.shownSuspended() || l.paused):
		return l.fail("suspend control message is only valid when tracing or initializing"), false
	case l.state == tracing && !l.listening:
		l.deaf = true
		return false, true
	case l.state == tracing:
		l.suspended = true
		l.suspensions++
	case l.state == draining:
		return l.fail("the HQ ordered suspend where nothing was traced"), false
	}
	return false, false
}

// prepared means that the agent has its buffers, and opens its data connections next.
func (l *life) prepared() { l.ready = true }

// listens means that the agent's buffers follow its mode from now on.
func (l *life) listens() { l.listening = true }

// unsuspend is the order to collect calls again. It is an error if the agent is not suspended.
func (l *life) unsuspend() (fails bool) {
	if l.state == tracing && !l.shownSuspended() {
		return l.fail("unsuspend control message is only valid when suspended or initializing")
	}
	l.suspended, l.deaf = false, false
	return false
}

// pause is the order to halt the program. It is an error if the program is paused or suspended.
func (l *life) pause() (fails bool) {
	if l.state == tracing && (l.paused || l.shownSuspended()) {
		return l.fail("pause control message is only valid when tracing")
	}
	l.paused = l.state == tracing
	return false
}

// unpause is the order to continue the program. It is an error if the program is not paused.
func (l *life) unpause() (fails bool) {
	if l.state == tracing && !l.paused {
		return l.fail("unpause control message is only valid when paused")
	}
	l.paused = false
	return false
}

// stop is the HQ's order to end tracing: collected calls are still sent.
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

// quit is the request of the program's user to end it early.
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

// fail is an error of the HQ or of the agent itself. Before start it ends the program. Afterwards it ends tracing, for
// the program immediately. It returns true if the agent now has to send error, and to close its connections later.
func (l *life) fail(reason string) (fails bool) {
	switch {
	case l.final() || l.state == failing:
		return false
	case l.state == waiting:
		l.end(Died, reason)
		return false
	case !l.ready:
		l.hang(reason + ", before the agent accepts errors")
		return false
	}
	l.state, l.outcome, l.reason = failing, Untraced, reason
	if l.idle {
		l.outcome = Refused
	}
	return true
}

// errorSettled means that the control connection stayed open for Options.Settle after the agent's error, so its loss is
// now harmless.
func (l *life) errorSettled() { l.safe = true }

// closed means that a failing agent has closed its connections.
func (l *life) closed() {
	if l.state == failing {
		l.end(l.outcome, l.reason)
	}
}

// programEnded is the normal end of the program.
func (l *life) programEnded() {
	l.ended = true
	if l.state == tracing {
		l.state = draining
		l.outcome, l.reason = Completed, "the program ended and everything was sent"
	}
}

// allSent means that the senders have sent all collected calls and closed their connections.
func (l *life) allSent() {
	if l.dataLost {
		return
	}
	if l.state == draining || l.state == orphaned {
		l.state = finished
	}
}

const suspendedAndGone = "the HQ suspended the agent and disconnected"

// controlLost is the loss of the control connection. settle means that its meaning is known only after Options.Settle.
func (l *life) controlLost(reason string) (settle bool) {
	switch l.state {
	case waiting:
		l.end(Died, reason+" before start")
	case failing:
		if !l.safe {
			l.hang(l.reason + ", and at the same time " + reason)
		}
	case tracing, draining:
		switch {
		case l.idle:
			l.end(Refused, reason)
		case l.suspended && l.unsent == 0:
			l.end(Untraced, suspendedAndGone)
		case l.ordered || l.ended && l.unsent == 0:
			// The HQ may disconnect, or there are no unsent calls.
		case l.dataLost:
			l.hang(reason + " together with the data connections")
		default:
			if l.state == tracing {
				l.outcome, l.reason = Untraced, reason+", the HQ read the data connections to their end"
			}
			l.state = orphaned
			settle = true
		}
	}
	return settle
}

// lostData is the loss of a data connection. settle means that the control connection has to stay open for
// Options.Settle before the program is safe.
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

// dataLossSettled means that the control connection stayed open for Options.Settle after the loss of a data connection,
// which is now harmless.
func (l *life) dataLossSettled(reason string) {
	switch {
	case l.state == tracing && l.suspended && l.unsent == 0:
		l.end(Untraced, suspendedAndGone)
	case l.state == tracing, l.state == draining:
		l.end(Untraced, reason+" and the control connection stayed open")
	}
}

// orphanSettled means that the data connections stayed open for Options.Settle after the control connection, so their
// loss is no longer simultaneous.
func (l *life) orphanSettled() {
	l.settled = true
	l.releaseOrphan()
}

// queued means that the program queued a buffer for the senders.
func (l *life) queued() { l.unsent++ }

// sent means that a sender has sent a buffer.
func (l *life) sent() {
	l.unsent--
	l.releaseOrphan()
}

// releaseOrphan ends tracing if the control connection is lost and all collected calls were sent nevertheless.
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

// mode returns the mode of a heartbeat.
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
