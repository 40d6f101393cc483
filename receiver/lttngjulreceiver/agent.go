// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// agent is an agent that has registered. It belongs to one goroutine, which owns its
// connection; others give it orders, and read what doesn't change, and loggers.
type agent struct {
	env          *environment
	conversation *conversation
	who          lttngagent.Agent
	// pid is that of its process, as the process itself sees it; 0: it wasn't told.
	pid        uint32
	registered time.Time
	orders     orders
	// loggers is how many it has, and heard when it answered last, in Unix nanoseconds.
	loggers, heard atomic.Int64

	// last is what came of the last command.
	last answer
	// unshow ends that the agent is shown; nil: it isn't.
	unshow func()
	// released says that the application was let go on.
	released bool
	// origin is whose its log records are; nil where the agent is not introduced yet, or no
	// pipeline takes them and nobody steers it. held are those that wait for it: what the agent refused of its
	// first commands.
	origin *origin
	held   []logEntry
	// process is what is known of its process once that was looked up.
	process  process
	lookedUp bool
	// undo are the commands that leave the agent as it was, the last first to be sent.
	undo      []lttngagent.Command
	inventory inventory
	pace      pace
}

func newAgent(env *environment, c *conversation, pid uint32) *agent {
	a := &agent{
		env: env, conversation: c, who: c.with, pid: pid, registered: env.now(),
		pace: pace{first: env.firstPause, interval: env.config.ListInterval},
	}
	a.heard.Store(a.registered.UnixNano())
	return a
}

// tell has the agent told commands, as soon as those before are answered. It reports
// whether it will be, which it isn't once the receiver leaves it.
func (a *agent) tell(commands ...lttngagent.Command) bool {
	given := make([]order, len(commands))
	for i, command := range commands {
		given[i] = order{command: command}
	}
	return a.give(given...)
}

// give is tell for orders whose answers somebody waits for.
func (a *agent) give(given ...order) bool {
	taken := a.orders.give(given...)
	a.conversation.wake()
	return taken
}

// leave has the agent left as it was, which has to be over at the time latest.
func (a *agent) leave(latest time.Time) {
	a.orders.end()
	a.conversation.hurry(latest)
	a.conversation.wake()
}

// run talks with the agent until it has gone or is left.
func (a *agent) run() {
	a.sayRegistered()
	if a.who.Dialect == lttngagent.RFC {
		// Nobody waits for it.
		a.introduce()
		a.show()
	}
	e := a.endOf(a.work())
	a.hide()
	a.gone(e)
	if e.cause != causeShutdown && !e.forgets(a.who.Domain) {
		a.part(e)
	}
}

// endOf says how the agent went that work returned an error for. Where its memory was needed
// that is freed first.
func (a *agent) endOf(err error) ending {
	e := endingOf(err)
	if why := a.conversation.purse.why(); why != nil && e.cause != causeShutdown {
		e = ending{cause: causeMemory, err: why}
	}
	if e.cause == causeMemory {
		a.inventory = inventory{}
		_ = a.conversation.purse.settle(0) // giving back always succeeds
	}
	return e
}

// part takes back what the agent was told whose connection is about to be closed, or is.
// What it may not have read is told it when it comes back.
func (a *agent) part(e ending) {
	if len(a.undo) == 0 || e.reads() && a.conversation.takeBack(a.undo, a.env.config.CommandTimeout) {
		return
	}
	a.env.leftovers.keep(a.life(), a.undo)
}

// work carries out orders, in between asks for loggers, and waits when there is nothing
// to do. It returns nil when the agent was left as it was.
func (a *agent) work() error {
	for {
		next, over := a.orders.next()
		err := a.conversation.purse.why()
		switch {
		case err != nil:
		case over:
			return a.restore()
		case next.command != nil:
			err = a.carryOutOrder(next)
		case a.pace.isDue(time.Now()):
			err = a.list()
		default:
			err = a.conversation.wait(a.pace.due)
		}
		if err != nil {
			return err
		}
	}
}

// restore lets the application go on, if it still waits, and takes back what the agent
// was told.
func (a *agent) restore() error {
	if a.who.Dialect == lttngagent.V2 && !a.released {
		if err := a.registrationDone(); err != nil {
			return &abandonedError{left: len(a.undo), err: err}
		}
	}
	a.takeLeftovers()
	for n := len(a.undo); n > 0; n = len(a.undo) {
		if err := a.carryOut(a.undo[n-1]); err != nil {
			return &abandonedError{left: n, err: err}
		}
		a.undo = a.undo[:n-1] // what the agent refuses is not tried again
	}
	return nil
}
