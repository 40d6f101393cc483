// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import (
	"slices"
	"time"
)

// A headquarters leaves an agent whose program runs in steps. Any other order can hang the
// program forever:
//
//  1. An agent without a data connection gets no command: it is refused the connections that it
//     opens, and that ends its tracing. Between start and its first data connection it makes
//     its buffers; a command that ends its tracing then leaves the program waiting for them.
//  2. SuspendForGood: the agent gets suspend, and answers with a data break.
//  3. AwaitRest: the headquarters reads the data that the agent had collected until then.
//  4. The agent gets an error message with the reason. It closes its connections itself, after
//     its heartbeat interval.
//  5. Parting: the headquarters reads the connections until the agent closes them.

// SuspendForGood is step 2. A program that is paused goes on first. It waits for the answer, and
// returns the status in which the agent is then: Suspended, or Ended where it has ended its
// tracing itself, or another one when its control connection is gone or the patience is over.
func (a *Agent) SuspendForGood(gone <-chan struct{}, patience time.Duration) Status {
	a.Suspend(Leaving)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	a.Await(func(s Status) bool { return s.State == Suspended || s.State == Ended }, gone, timer.C)
	return a.Status()
}

// Arrivals describes the received data of an agent.
type Arrivals struct {
	// Numbered is how many messages with a sequence number have arrived, and Bytes how many bytes.
	Numbered, Bytes uint64
	// Ended: all data connections have ended, or none can be opened any more.
	Ended bool
	// Held: the readers wait for something else, such as a pipeline, so silence has no meaning and the time does not
	// count. Behind: they have not caught up, so silence has no meaning, but the time counts.
	Held, Behind bool
}

// Incoming are an agent's data connections.
type Incoming interface {
	// Arrivals describes the data received so far.
	Arrivals() Arrivals
	// NextArrival returns a channel that is closed when data arrives or a connection ends.
	NextArrival() <-chan struct{}
}

// RestTimes bound step 3.
type RestTimes struct {
	// Quiet: all data counts as arrived after this time without data. Complete is the same if all numbers before the
	// agent's data break have arrived.
	Quiet, Complete time.Duration
	// Limit bounds the step.
	Limit time.Duration
}

// AwaitRest is step 3. It waits until all data connections have ended, nothing has arrived for
// some time, or the limit is reached. It reports false when over or full was closed first; nil
// channels never are.
func (a *Agent) AwaitRest(in Incoming, times RestTimes, over, full <-chan struct{}) bool {
	timer := time.NewTimer(times.Limit)
	defer timer.Stop()
	now := time.Now()
	since, spent, last := now, time.Duration(0), in.Arrivals()
	for {
		arrival, change := in.NextArrival(), a.Next()
		arrived, before := in.Arrivals(), now
		now = time.Now()
		if !arrived.Held {
			spent += now.Sub(before)
		}
		if arrived.Held || arrived.Behind || arrived.Numbered != last.Numbered || arrived.Bytes != last.Bytes {
			since, last = now, arrived
		}
		left := min(a.quiet(arrived, times)-now.Sub(since), times.Limit-spent)
		if arrived.Ended || left <= 0 {
			return true
		}
		timer.Reset(left)
		select {
		case <-timer.C:
		case <-arrival:
		case <-change:
		case <-over:
			return false
		case <-full:
			return false
		}
	}
}

// quiet returns the time without data after which all data counts as arrived.
func (a *Agent) quiet(arrived Arrivals, times RestTimes) time.Duration {
	if s := a.Status(); s.Broken && arrived.Numbered >= s.BreakAt {
		return times.Complete
	}
	return times.Quiet
}

// Connections are the connections of an agent after the error message, for step 5.
type Connections interface {
	// Gone returns channels that are closed when the agent has closed its data connections and
	// its control connection.
	Gone() (data []<-chan struct{}, control <-chan struct{})
	// CloseData closes the data connections and CloseControl the control connection, unless the agent has closed them.
	CloseData()
	CloseControl()
}

// Parting is step 5: the wait for an agent to close its connections. An agent can be stopped for
// as long as its debugger wants, so its connections stay open until the headquarters ends. From then on
// the fields make one of two policies:
//
//	user      fields          the headquarters closes the connections
//	receiver  Over, no Cut    after Grace, when Over is closed
//	guard     Cut, no Over    after Grace if the agent has answered suspend, otherwise when Cut is closed
//
// Cut, if it is set, ends the wait in both policies.
type Parting struct {
	// Stopping is closed when the headquarters begins to end. From then on the agent has at least
	// the time that Grace returns.
	Stopping <-chan struct{}
	Grace    func() time.Duration
	// Over, unless nil: after the time of Grace, the agent has until Over is closed. On a busy machine the
	// time of Grace is too short for some agents, and a program whose connections are closed too early hangs.
	Over <-chan struct{}
	// Answered: the agent has answered suspend. It makes a difference only if Over is nil.
	Answered bool
	// Cut, when it is closed, ends the wait in any case. Nil: it never is.
	Cut <-chan struct{}
	// Control is how long the control connection outlives the data connections if the headquarters closes those. An
	// agent that finds them lost, and can report it, lets its program run.
	Control time.Duration
}

// Await waits, and then closes in order what the agent has not closed.
func (p Parting) Await(c Connections) {
	data, control := c.Gone()
	if p.waitUntilGone(append(slices.Clone(data), control)) {
		return
	}
	open := slices.ContainsFunc(data, func(gone <-chan struct{}) bool { return !isClosed(gone) })
	c.CloseData()
	if open {
		timer := time.NewTimer(p.Control)
		defer timer.Stop()
		select {
		case <-control:
		case <-timer.C:
		}
	}
	c.CloseControl()
}

// waitUntilGone waits as long as the agent may take, and reports whether it has closed all.
func (p Parting) waitUntilGone(connections []<-chan struct{}) bool {
	stopping := p.Stopping
	var grace <-chan time.Time
	var over <-chan struct{}
	for _, gone := range connections {
		for !isClosed(gone) {
			select {
			case <-gone:
			case <-stopping:
				stopping, grace = nil, time.After(p.Grace())
			case <-grace:
				if p.Answered && p.Over == nil {
					return false
				}
				grace, over = nil, p.Over
			case <-over:
				return false
			case <-p.Cut:
				return false
			}
		}
	}
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
