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

// Unfit returns the commands of operators that have no effect in this state, or are refused, with the reason.
func (s *State) Unfit() map[string]string {
	unfit := map[string]string{}
	switch state := s.Agent.State; {
	case s.Leaving, s.Over, state == hq.Ended, s.Mode == bytefrog.ModeShuttingDown:
		for _, command := range [...]string{Suspend, Unsuspend, Pause, Unpause, Stop} {
			unfit[command] = "the agent is ending its run"
		}
		return unfit
	case state == hq.Paused:
		unfit[Pause] = "the program is paused already"
	case state.IsSuspended(), s.Agent.Reasons != 0:
		unfit[Pause] = "tracing is suspended, and a pause would end it permanently"
	}
	if s.Agent.State != hq.Paused {
		unfit[Unpause] = "the program is not paused"
	}
	if s.Agent.Reasons&hq.Operator != 0 {
		unfit[Suspend] = "tracing is suspended already"
	}
	if !s.Agent.State.IsSuspended() && s.Agent.Reasons == 0 {
		unfit[Unsuspend] = "tracing is not suspended"
	}
	return unfit
}

// commands carries out commands of operators. It is for many goroutines.
type commands struct{ run *run }

// do carries out a command, and returns its result as a text.
func (c *commands) do(ctx context.Context, command string) (message string, err error) {
	if err := c.awaitReady(ctx); err != nil {
		return "", err
	}
	switch command {
	case Suspend:
		return c.suspend(ctx)
	case Unsuspend:
		return c.unsuspend(ctx)
	case Pause:
		return c.pause(ctx)
	case Unpause:
		return c.unpause(ctx)
	default:
		return c.stop(ctx)
	}
}

// awaitReady waits until the agent is prepared for commands. Between start and its first data
// connection it makes its buffers, and a command that it reads then hangs its program.
func (c *commands) awaitReady(ctx context.Context) error {
	select {
	case <-c.run.agent.Prepared():
	case <-c.run.life.leaving:
		return c.errLeft()
	case <-ctx.Done():
	}
	// More than one of these channels may be ready.
	switch {
	case ctx.Err() == nil:
		return nil
	case c.run.agent.IsPrepared():
		return agentcontrol.Errorf(agentcontrol.NoAnswer, "request cancelled before the command was sent: %w", context.Cause(ctx))
	default:
		return agentcontrol.Errorf(agentcontrol.NotNow, "the agent obeys commands only after its first class report or event; the command was not sent: %w", context.Cause(ctx))
	}
}

func (c *commands) errLeft() error {
	<-c.run.life.leaving
	return agentcontrol.Errorf(agentcontrol.Lost, "the agent is gone, or the receiver is disconnecting from it: %w", c.run.life.ending)
}

// notConfirmed begins the error of a command that was sent, and whose effect is not known.
const notConfirmed = "command sent, but the agent has not confirmed that it "

// await waits until the agent has confirmed a command. Without an answer in time, the error begins with unanswered.
func (c *commands) await(ctx context.Context, unanswered string, isSo func() bool) error {
	for {
		next := c.run.agent.Next()
		if isSo() {
			if c.run.life.isLeaving() { // the farewell may have caused it
				return c.errLeft()
			}
			return nil
		}
		select {
		case <-next:
		case <-c.run.life.leaving:
			return c.errLeft()
		case <-ctx.Done():
			return agentcontrol.Errorf(agentcontrol.NoAnswer, "%s: %w", unanswered, context.Cause(ctx))
		}
	}
}

// apply applies a command to the state of the agent, as one step. The function returns the messages to send,
// or the error of a refused command.
func (c *commands) apply(command func(m *hq.Machine) ([]hq.Command, error)) error {
	var refused error
	err := c.run.agent.Do(func(m *hq.Machine) (messages []hq.Command, _ error) {
		switch {
		case c.run.life.isLeaving():
			refused = agentcontrol.Errorf(agentcontrol.Lost, "the receiver is disconnecting from the agent")
		case m.Status().State == hq.Ended:
			refused = agentcontrol.Errorf(agentcontrol.NotNow, "the agent is ending its run, and would treat the command as an error")
		default:
			messages, refused = command(m)
		}
		return messages, refused
	})
	if err != nil && refused == nil {
		return agentcontrol.Errorf(agentcontrol.Lost, "could not send the command to the agent: %w", err)
	}
	return refused
}

// suspend is confirmed by a data break. A paused program resumes first, and is not paused again: only
// the agent of a running program can answer.
func (c *commands) suspend(ctx context.Context) (string, error) {
	message := "tracing is suspended"
	err := c.apply(func(m *hq.Machine) ([]hq.Command, error) {
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
	err = c.await(ctx, notConfirmed+"suspended tracing", func() bool {
		switch now := c.run.agent.Status(); {
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
func (c *commands) unsuspend(ctx context.Context) (string, error) {
	suspended := false
	err := c.apply(func(m *hq.Machine) ([]hq.Command, error) {
		suspended = m.Status().State.IsSuspended()
		return m.Resume(hq.Operator), nil
	})
	if err != nil {
		return "", err
	}
	if !suspended {
		return "tracing was not suspended", nil
	}
	c.run.agent.resumeAfterOverload(c.run.batches.isHolding)
	var now hq.Status
	if err := c.await(ctx, "unsuspend waits until the agent answers the earlier suspend", func() bool {
		now = c.run.agent.Status()
		return now.Reasons&(hq.Operator|hq.Overload) != 0 || !now.State.IsSuspended()
	}); err != nil {
		return "", err
	}
	switch {
	case now.Reasons&hq.Operator != 0:
		return suspendedByAnother, nil
	case now.Reasons&hq.Overload != 0:
		return "tracing goes on when the pipeline has accepted all held batches", nil
	}
	return c.awaitTracing(ctx)
}

// suspendedByAnother is the result of an unsuspend that a later command cancels, before or after the
// agent gets it.
const suspendedByAnother = "another command suspended tracing meanwhile"

// awaitTracing waits until an agent that was sent unsuspend traces again: its heartbeat has another mode,
// or follows new events.
func (c *commands) awaitTracing(ctx context.Context) (string, error) {
	heartbeats, events := c.run.agent.heartbeats.Load(), c.run.agent.events.Load()
	message := "tracing goes on"
	err := c.await(ctx, notConfirmed+"traces again", func() bool {
		if c.run.control.heartbeats.Load() > heartbeats && (c.run.control.lastMode() != bytefrog.ModeSuspended || c.run.stream.Received() > events) {
			c.run.control.resumed()
			return true
		}
		switch reasons := c.run.agent.Status().Reasons; {
		case reasons == 0:
			return false
		case reasons&hq.Operator != 0:
			message = suspendedByAnother
		default:
			message = "tracing was suspended again meanwhile"
		}
		return true
	})
	return message, err
}

// pause is confirmed by the agent's heartbeats. It is refused if tracing is suspended, or will be.
func (c *commands) pause(ctx context.Context) (string, error) {
	message := "the program is paused"
	err := c.apply(func(m *hq.Machine) ([]hq.Command, error) {
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
	err = c.await(ctx, notConfirmed+"paused the program", func() bool {
		if c.run.control.lastMode() == bytefrog.ModePaused {
			return true
		}
		if c.run.agent.IsPauseWanted() {
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
func (c *commands) unpause(ctx context.Context) (string, error) {
	var heartbeats uint64
	running := false
	err := c.apply(func(m *hq.Machine) ([]hq.Command, error) {
		running = m.Status().State != hq.Paused
		if running {
			return nil, nil
		}
		heartbeats = c.run.control.heartbeats.Load()
		return m.Pause(false), nil
	})
	if err != nil {
		return "", err
	}
	if running {
		return "the program was not paused", nil
	}
	message := "the program goes on"
	err = c.await(ctx, notConfirmed+"resumed the program", func() bool {
		if c.run.control.heartbeats.Load() > heartbeats && c.run.control.lastMode() != bytefrog.ModePaused {
			return true
		}
		if !c.run.agent.IsPauseWanted() {
			return false
		}
		message = "another command paused the program meanwhile"
		return true
	})
	return message, err
}

// stop is confirmed by the end of the run. A paused program resumes first: it could not send its buffers.
func (c *commands) stop(ctx context.Context) (string, error) {
	if err := c.apply(func(m *hq.Machine) ([]hq.Command, error) { return m.Stop(), nil }); err != nil {
		return "", err
	}
	err := c.await(ctx, notConfirmed+"ends its run", func() bool { return c.run.control.lastMode() == bytefrog.ModeShuttingDown })
	if agentcontrol.ReasonOf(err) == agentcontrol.Lost && err != nil {
		err = nil // it has gone, as commanded
	}
	return "tracing is over", err
}
