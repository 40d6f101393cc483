// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// Commands of operators. The state machine of package hq sends no command that does not fit the
// agent's mode.
const (
	// Suspend stops tracing until Unsuspend. The program runs on, even if it was paused.
	Suspend   = "suspend"
	Unsuspend = "unsuspend"
	// Pause halts the program until Unpause.
	Pause   = "pause"
	Unpause = "unpause"
	// Stop ends tracing. Java's agent lets its program run on, as measurements show; by the document of
	// the protocol it ends the program.
	Stop = "stop"
)

// orders carries out commands of operators. It is for many goroutines.
type orders struct{ run *run }

// do carries out a command, and returns its result as a text.
func (o *orders) do(ctx context.Context, command string) (message string, err error) {
	if err := o.awaitReady(ctx); err != nil {
		return "", err
	}
	switch command {
	case Suspend:
		return o.suspend(ctx)
	case Unsuspend:
		return o.unsuspend(ctx)
	case Pause:
		return o.pause(ctx)
	case Unpause:
		return o.unpause(ctx)
	default:
		return o.stop(ctx)
	}
}

// awaitReady waits until the agent is prepared for commands. Between start and its first data
// connection it makes its buffers, and a command that it reads then hangs its program.
func (o *orders) awaitReady(ctx context.Context) error {
	select {
	case <-o.run.agent.Prepared():
	case <-o.run.life.leaving:
		return o.errLeft()
	case <-ctx.Done():
	}
	// More than one of these channels may be ready.
	switch {
	case ctx.Err() == nil:
		return nil
	case o.run.agent.IsPrepared():
		return agentcontrol.Errorf(agentcontrol.NoAnswer, "request cancelled before the command was sent: %w", context.Cause(ctx))
	default:
		return agentcontrol.Errorf(agentcontrol.NotNow, "the agent obeys commands only after its first class report or event; the command was not sent: %w", context.Cause(ctx))
	}
}

func (o *orders) errLeft() error {
	<-o.run.life.leaving
	return agentcontrol.Errorf(agentcontrol.Lost, "the agent is gone, or the receiver is disconnecting from it: %w", o.run.life.ending)
}

// notConfirmed begins the error of a command that was sent, and whose effect is not known.
const notConfirmed = "command sent, but the agent has not confirmed that it "

// await waits until the agent has confirmed a command. Without an answer in time, the error begins with unanswered.
func (o *orders) await(ctx context.Context, unanswered string, isSo func() bool) error {
	for {
		next := o.run.agent.Next()
		if isSo() {
			if o.run.life.isLeaving() { // the farewell may have caused it
				return o.errLeft()
			}
			return nil
		}
		select {
		case <-next:
		case <-o.run.life.leaving:
			return o.errLeft()
		case <-ctx.Done():
			return agentcontrol.Errorf(agentcontrol.NoAnswer, "%s: %w", unanswered, context.Cause(ctx))
		}
	}
}

// command applies an order to the state of the agent, as one step. The order returns the commands to send,
// or the error of a refused order.
func (o *orders) command(order func(m *hq.Machine) ([]hq.Command, error)) error {
	var refused error
	err := o.run.agent.Do(func(m *hq.Machine) (commands []hq.Command, _ error) {
		switch {
		case o.run.life.isLeaving():
			refused = agentcontrol.Errorf(agentcontrol.Lost, "the receiver is disconnecting from the agent")
		case m.Status().State == hq.Ended:
			refused = agentcontrol.Errorf(agentcontrol.NotNow, "the agent is ending its run, and would treat the command as an error")
		default:
			commands, refused = order(m)
		}
		return commands, refused
	})
	if err != nil && refused == nil {
		return agentcontrol.Errorf(agentcontrol.Lost, "could not send the command to the agent: %w", err)
	}
	return refused
}

// suspend is confirmed by a data break. A paused program resumes first, and is not paused again: only
// the agent of a running program can answer.
func (o *orders) suspend(ctx context.Context) (string, error) {
	message := "tracing is suspended"
	err := o.command(func(m *hq.Machine) ([]hq.Command, error) {
		switch before := m.Status(); {
		case before.Reasons&hq.Operator != 0:
			message = "tracing was suspended already"
		case before.State == hq.Paused:
			message = "tracing is suspended; the program was paused, and goes on"
		}
		return append(m.Suspend(hq.Operator), m.Pause(false)...), nil
	})
	if err != nil {
		return "", err
	}
	err = o.await(ctx, notConfirmed+"suspended tracing", func() bool {
		switch now := o.run.agent.Status(); {
		case now.Broken:
			return true
		case now.Reasons&hq.Operator != 0:
			return false
		}
		message = "another command resumed tracing meanwhile"
		return true
	})
	return message, err
}

// unsuspend is confirmed by the agent's heartbeats, or by events. It is sent when the agent has answered
// suspend, and the pipeline has accepted all held batches.
func (o *orders) unsuspend(ctx context.Context) (string, error) {
	suspended := false
	err := o.command(func(m *hq.Machine) ([]hq.Command, error) {
		suspended = m.Status().State.IsSuspended()
		return m.Resume(hq.Operator), nil
	})
	if err != nil {
		return "", err
	}
	if !suspended {
		return "tracing was not suspended", nil
	}
	o.run.agent.resumeAfterOverload(o.run.batches.isHolding)
	var now hq.Status
	if err := o.await(ctx, "unsuspend waits until the agent answers the earlier suspend", func() bool {
		now = o.run.agent.Status()
		return now.Reasons&(hq.Operator|hq.Overload) != 0 || !now.State.IsSuspended()
	}); err != nil {
		return "", err
	}
	switch {
	case now.Reasons&hq.Operator != 0:
		return "another command suspended tracing meanwhile", nil
	case now.Reasons&hq.Overload != 0:
		return "tracing goes on when the pipeline has accepted all held batches", nil
	}
	return o.awaitTracing(ctx)
}

// awaitTracing waits until an agent that was sent unsuspend traces again: its heartbeat has another mode,
// or follows new events.
func (o *orders) awaitTracing(ctx context.Context) (string, error) {
	heartbeats, events := o.run.agent.heartbeats.Load(), o.run.agent.events.Load()
	message := "tracing goes on"
	err := o.await(ctx, notConfirmed+"traces again", func() bool {
		if o.run.control.heartbeats.Load() > heartbeats && (o.run.control.lastMode() != bytefrog.ModeSuspended || o.run.stream.Received() > events) {
			return true
		}
		if o.run.agent.Status().Reasons == 0 {
			return false
		}
		message = "tracing was suspended again meanwhile"
		return true
	})
	return message, err
}

// pause is confirmed by the agent's heartbeats. It is refused if tracing is suspended, or will be.
func (o *orders) pause(ctx context.Context) (string, error) {
	message := "the program is paused"
	err := o.command(func(m *hq.Machine) ([]hq.Command, error) {
		switch now := m.Status(); {
		case now.State == hq.Paused:
			message = "the program was paused already"
			return nil, nil
		case now.Reasons&hq.Operator != 0:
			return nil, agentcontrol.Errorf(agentcontrol.NotNow, "tracing is suspended, and a pause would end it permanently: send unsuspend first")
		case now.Reasons&hq.Overload != 0, now.State.IsSuspended():
			return nil, agentcontrol.Errorf(agentcontrol.NotNow, "tracing is suspended until the pipeline has accepted all held batches, and a pause would end it permanently: try again then")
		}
		return m.Pause(true), nil
	})
	if err != nil {
		return "", err
	}
	err = o.await(ctx, notConfirmed+"paused the program", func() bool {
		if o.run.control.lastMode() == bytefrog.ModePaused {
			return true
		}
		if o.run.agent.IsPauseWanted() {
			return false
		}
		message = "another command resumed the program meanwhile"
		return true
	})
	return message, err
}

// unpause is sent to an agent that was sent pause, or whose heartbeat has the mode paused. Any other
// agent treats it as an error, and ends its tracing. If an overload waits for the end of the pause, the
// agent is suspended then.
func (o *orders) unpause(ctx context.Context) (string, error) {
	var heartbeats uint64
	running := false
	err := o.command(func(m *hq.Machine) ([]hq.Command, error) {
		running = m.Status().State != hq.Paused
		if running {
			return nil, nil
		}
		heartbeats = o.run.control.heartbeats.Load()
		return m.Pause(false), nil
	})
	if err != nil {
		return "", err
	}
	if running {
		return "the program was not paused", nil
	}
	message := "the program goes on"
	err = o.await(ctx, notConfirmed+"resumed the program", func() bool {
		if o.run.control.heartbeats.Load() > heartbeats && o.run.control.lastMode() != bytefrog.ModePaused {
			return true
		}
		if !o.run.agent.IsPauseWanted() {
			return false
		}
		message = "another command paused the program meanwhile"
		return true
	})
	return message, err
}

// stop is confirmed by the end of the run. A paused program resumes first: it could not send its buffers.
func (o *orders) stop(ctx context.Context) (string, error) {
	if err := o.command(func(m *hq.Machine) ([]hq.Command, error) { return m.Stop(), nil }); err != nil {
		return "", err
	}
	err := o.await(ctx, notConfirmed+"ends its run", func() bool { return o.run.control.lastMode() == bytefrog.ModeShuttingDown })
	if agentcontrol.ReasonOf(err) == agentcontrol.Lost && err != nil {
		err = nil // it has gone, as ordered
	}
	return "tracing is over", err
}
