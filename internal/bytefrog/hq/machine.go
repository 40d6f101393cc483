// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import "github.com/callbraid/callbraid/internal/bytefrog"

// State is the progress of an agent with its commands.
type State uint8

// The states of an agent. A headquarters learns only one of them from the agent itself: the
// agent confirms suspend, with a data break. It confirms no other command.
const (
	// Preparing: the agent has not been started, or makes its buffers. It gets no command: a
	// suspend would hold no event back, and the next one would end its tracing.
	Preparing State = iota
	// Tracing: the agent traces.
	Tracing
	// Paused: the agent was sent pause, and its program stands still.
	Paused
	// Suspending: the agent was sent suspend and has not answered.
	Suspending
	// Unanswered: the agent was sent suspend and has not answered in time.
	Unanswered
	// Suspended: the agent has answered suspend with a data break.
	Suspended
	// Ended: the agent traces no more. It gets no command.
	Ended

	stateCount = iota
)

var stateNames = [stateCount]string{"preparing", "tracing", "paused", "suspending", "unanswered", "suspended", "ended"}

// String returns the state's name.
func (s State) String() string { return stateNames[s] }

// IsSuspended reports whether the agent was sent suspend, and not unsuspend since.
func (s State) IsSuspended() bool { return s == Suspending || s == Unanswered || s == Suspended }

// Reason is a set of reasons to suspend an agent.
type Reason uint8

// The reasons to suspend an agent.
const (
	Operator Reason = 1 << iota // a person, the configuration or the guard's collector ordered it
	Overload                    // the pipeline or the collector accepts too little
	Absence                     // the guard has no collector
	Leaving                     // the headquarters leaves the agent: this reason stays
)

// Status is a headquarters' knowledge of an agent's tracing.
type Status struct {
	State State
	// Reasons are the reasons for which the agent is suspended, or will be as soon as possible.
	Reasons Reason
	// BreakAt is the number before which the data breaks, if Broken: the agent has answered
	// suspend, and was not sent unsuspend since.
	BreakAt uint64
	Broken  bool
}

// Command is a command to an agent.
type Command struct {
	Of bytefrog.MessageType
	// From is the state in which the agent reads the command, and Reasons are those to suspend
	// it at that moment.
	From    State
	Reasons Reason
}

// Machine is the state machine of one agent. It decides which commands the agent gets:
//
//	                  ┌──────────► Paused ─────────┐
//	                pause/unpause            unpause, suspend
//	                  ▼                            ▼
//	Preparing ───► Tracing ──────suspend────► Suspending ──data break──► Suspended
//	                  ▲                            │ time                    │
//	                  │                            ▼                         │
//	                  ├───────unsuspend────── Unanswered ──data break──► ────┤
//	                  └────────────────────────unsuspend─────────────────────┘
//	any but Preparing ──stop──► Ended;  any ──the agent ends──► Ended
//
// The agent obeys each command in one state only, and ends its tracing for good when it reads one in another: suspend
// and pause while it traces, unsuspend while it is suspended, unpause while it is paused. Unsuspend also waits for the
// answer to suspend, or for its time. So the machine separates the orders for the agent from its state. Each event
// changes one of them. The table moves has the commands that bring the state to the orders.
//
// Each method is an event, and returns the commands that have to be sent, in their order. The
// zero value is an agent that was not started.
type Machine struct {
	// Yielding are reasons that do not resume a paused program: the agent is suspended for them after the pause. Set it
	// before the first event.
	Yielding Reason

	state   State
	reasons Reason
	breakAt uint64
	broken  bool
	// pause and stop are orders.
	pause, stop bool
	// commanded: the agent was sent a command, so its last heartbeat may be older. foundPaused: its last heartbeat
	// before that reported a paused program.
	commanded, foundPaused bool
}

// goal is the result of all orders.
type goal uint8

const (
	toTrace goal = iota
	toPause
	toSuspend
	toStop
)

// move is a step towards a goal.
type move struct {
	commands []bytefrog.MessageType
	next     State
}

// moves has the step from each state towards each goal. Where it has none, the agent gets no
// command: it has reached the goal, or has to confirm something first, or obeys nothing.
var moves = map[State]map[goal]move{
	Tracing: {
		toPause:   {send(bytefrog.TypePause), Paused},
		toSuspend: {send(bytefrog.TypeSuspend), Suspending},
		toStop:    {send(bytefrog.TypeStop), Ended},
	},
	Paused: {
		toTrace:   {send(bytefrog.TypeUnpause), Tracing},
		toSuspend: {send(bytefrog.TypeUnpause, bytefrog.TypeSuspend), Suspending},
		toStop:    {send(bytefrog.TypeUnpause, bytefrog.TypeStop), Ended}, // paused, it could not send its buffers
	},
	Suspending: {
		toStop: {send(bytefrog.TypeStop), Ended},
	},
	Unanswered: {
		toTrace: {send(bytefrog.TypeUnsuspend), Tracing},
		toPause: {send(bytefrog.TypeUnsuspend, bytefrog.TypePause), Paused},
		toStop:  {send(bytefrog.TypeStop), Ended},
	},
	Suspended: {
		toTrace: {send(bytefrog.TypeUnsuspend), Tracing},
		toPause: {send(bytefrog.TypeUnsuspend, bytefrog.TypePause), Paused},
		toStop:  {send(bytefrog.TypeStop), Ended},
	},
}

func send(commands ...bytefrog.MessageType) []bytefrog.MessageType { return commands }

// Status returns the state of the agent, the reasons of its suspension, and its last break.
func (m *Machine) Status() Status {
	return Status{State: m.state, Reasons: m.reasons, BreakAt: m.breakAt, Broken: m.broken}
}

// IsPauseWanted reports whether the program was ordered to pause.
func (m *Machine) IsPauseWanted() bool { return m.pause }

// goal returns the result of all orders. A suspension outranks a pause, unless the program is paused and all reasons to
// suspend yield.
func (m *Machine) goal() goal {
	due := m.reasons
	if m.pause && m.state == Paused {
		due &^= m.Yielding
	}
	switch {
	case m.stop:
		return toStop
	case m.pause && due == 0:
		return toPause
	case m.reasons != 0:
		return toSuspend
	default:
		return toTrace
	}
}

// settle returns the commands that bring the agent to the goal.
func (m *Machine) settle() (commands []Command) {
	step, ok := moves[m.state][m.goal()]
	if !ok {
		return nil
	}
	for _, of := range step.commands {
		commands = append(commands, Command{Of: of, From: m.state, Reasons: m.reasons})
	}
	m.state, m.commanded = step.next, true
	m.broken = m.broken && step.next == Ended
	return commands
}

// Prepared: the agent obeys commands from now on.
func (m *Machine) Prepared() []Command {
	if m.state != Preparing {
		return nil
	}
	m.state = Tracing
	if m.foundPaused {
		m.state = Paused
	}
	return m.settle()
}

// Suspend: the agent is to be suspended for the reasons.
func (m *Machine) Suspend(r Reason) []Command {
	m.reasons |= r
	return m.settle()
}

// Resume: the reasons are gone, except Leaving, which stays.
func (m *Machine) Resume(r Reason) []Command {
	m.reasons &^= r &^ Leaving
	return m.settle()
}

// Pause: the program is to pause, or to run.
func (m *Machine) Pause(wanted bool) []Command {
	m.pause = wanted
	return m.settle()
}

// Stop: tracing is to end.
func (m *Machine) Stop() []Command {
	m.stop = true
	return m.settle()
}

// Withdraw: the orders of a collector end: the reasons, a pause, and a stop that was not sent. A sent stop is final.
func (m *Machine) Withdraw(r Reason) []Command {
	m.pause, m.stop = false, false
	return m.Resume(r)
}

// DataBreak: the agent reports a data break before the number at. That answers suspend.
func (m *Machine) DataBreak(at uint64) []Command {
	m.breakAt = at
	if m.state != Suspending && m.state != Unanswered {
		return nil
	}
	m.state, m.broken = Suspended, true
	return m.settle()
}

// Overdue: the time in which an agent answers suspend is over. After that an agent without an answer can get unsuspend,
// too.
func (m *Machine) Overdue() []Command {
	if m.state != Suspending {
		return nil
	}
	m.state = Unanswered
	return m.settle()
}

// Heartbeat: the agent reports its mode. A headquarters that has sent no command learns from it that an earlier
// headquarters has paused the program.
func (m *Machine) Heartbeat(mode bytefrog.Mode) []Command {
	if mode == bytefrog.ModeShuttingDown {
		return m.End()
	}
	paused := mode == bytefrog.ModePaused
	if m.commanded || paused == m.foundPaused {
		return nil
	}
	m.foundPaused, m.pause = paused, paused
	switch {
	case paused && m.state == Tracing:
		m.state = Paused
	case !paused && m.state == Paused:
		m.state = Tracing
	}
	return m.settle()
}

// Release: the agent gets no more commands. A paused program continues first.
func (m *Machine) Release() (commands []Command) {
	if m.state == Paused {
		commands = []Command{{Of: bytefrog.TypeUnpause, From: Paused, Reasons: m.reasons}}
	}
	m.End()
	return commands
}

// End: the agent has ended its tracing, or its control connection has ended.
func (m *Machine) End() []Command {
	m.state = Ended
	return nil
}
