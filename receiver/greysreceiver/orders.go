// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// What somebody has started runs as what is configured does: it is asked again where it was
// lost, and of a process that is found instead of the last one, until it is over, somebody
// has it ended, or the receiver is shut down. It is known by then that it began: what fails
// at first is not asked again. What is configured and was ended is not asked for either,
// until somebody starts it.

// order is what somebody wants of a server.
type order struct {
	command string
	// ask is what is to be started, task the number of what is to end, and classes what is to
	// be reset.
	ask     ask
	task    int
	classes classes
	// outcome has room for one.
	outcome chan outcomeOfOrder
	// over is closed when nobody waits for the outcome any more.
	over <-chan struct{}
}

// outcomeOfOrder is what became of an order.
type outcomeOfOrder struct {
	answer agentcontrol.Answer
	err    error
}

// newOrder checks what somebody wants as what is configured is checked.
func newOrder(ctx context.Context, wanted agentcontrol.Order) (*order, error) {
	o := &order{command: wanted.Command, outcome: make(chan outcomeOfOrder, 1), over: ctx.Done()}
	arguments := wanted.Arguments
	target := TargetConfig{Class: arguments.Text(argumentClass), Method: arguments.Text(argumentMethod), Regexp: arguments.Boolean(argumentRegexp)}
	var err error
	switch o.command {
	case askMonitor.String():
		seconds, _ := arguments.Integer(argumentCycle)
		monitor := MonitorConfig{TargetConfig: target, Cycle: time.Duration(seconds) * time.Second}
		o.ask, err = monitor.ask("arguments")
	case orderEnd:
		number, _ := arguments.Integer(argumentTask)
		o.task = int(number)
	case orderReset:
		if target.Class == "" {
			target.Class = "*"
		}
		o.classes.regexp = target.Regexp
		o.classes.pattern, err = pattern("arguments.class", target.Class, "com.example.*")
	case orderList:
	default:
		limit, _ := arguments.Integer(argumentLimit)
		calls := CallsConfig{TargetConfig: target, Limit: int(limit)}
		o.ask, err = calls.ask("arguments", startable[o.command])
	}
	return o, err
}

// done says that the order was carried out, failed that it was not. What is said first counts.
func (o *order) done(message string, details ...agentcontrol.Detail) {
	o.say(outcomeOfOrder{answer: agentcontrol.Answer{Message: message, Details: details}})
}

func (o *order) failed(why *agentcontrol.Error) { o.say(outcomeOfOrder{err: why}) }

func (o *order) say(what outcomeOfOrder) {
	select {
	case o.outcome <- what:
	default:
	}
}

// isGivenUp reports whether nobody waits for the outcome any more.
func (o *order) isGivenUp() bool {
	select {
	case <-o.over:
		return true
	default:
		return false
	}
}

// carryOut does what somebody wants, or begins to.
func (a *attending) carryOut(o *order) {
	switch o.command {
	case orderList:
		a.list(o)
	case orderEnd:
		a.endTask(o)
	case orderReset:
		a.resetNow(o)
	default:
		a.startTask(o)
	}
}

// forsake answers all who wait for something that doesn't happen any more: the link is lost,
// or is left.
func (a *attending) forsake() {
	for _, t := range slices.Clone(a.process.tasks) {
		for _, s := range t.starting {
			s.failed(agentcontrol.Errorf(agentcontrol.Lost, "the server is lost, or was restarted; it was not told"))
		}
		t.starting = nil
	}
	a.sayEnded(a.server.env.now())
	for _, o := range a.resetting {
		o.failed(agentcontrol.Errorf(agentcontrol.Lost, "the server is lost, or was restarted; it was not told"))
	}
	a.resetting = nil
}
