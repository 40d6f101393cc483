// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
)

// Names of commands.
const (
	commandSuspend   = "suspend"
	commandUnsuspend = "unsuspend"
	commandPause     = "pause"
	commandUnpause   = "unpause"
	commandStop      = "stop"
)

// commands are the agent's. Stop ends tracing and lets the program run on where it was measured; by
// the protocol's document it ends the program. The state machine of package hq sends no command
// that doesn't fit the agent's mode.
var commands = []agentcontrol.Command{
	{Name: commandSuspend, Summary: "Stop tracing until unsuspend. The program runs on, also where it was paused; the data has a break."},
	{Name: commandUnsuspend, Summary: "Go on tracing after suspend."},
	{Name: commandPause, Disruptive: true, Summary: "Halt the traced program until unpause. Not while tracing is suspended."},
	{Name: commandUnpause, Summary: "Let the traced program go on after pause."},
	{Name: commandStop, Disruptive: true, Summary: "End tracing for good. Java's agent lets its program run on; by the protocol's document the program ends."},
}

// steered is the agent of a run as the extension agent_control sees it.
type steered struct {
	*run
	id string
}

// newSteered returns the agent of a run that was started.
func newSteered(r *run, receiver string) *steered {
	return &steered{run: r, id: agentcontrol.NewID(receiver, r.streamID.String())}
}

// ID is that of the run.
func (s *steered) ID() string { return s.id }

// Snapshot returns the agent's state.
func (s *steered) Snapshot() agentcontrol.Snapshot {
	state := s.run.state()
	var breaks uint64
	for _, n := range state.breaks {
		breaks += n
	}
	return agentcontrol.Snapshot{
		Tracer: metadata.Type.String(), Receiver: s.env.ID, Service: agentcontrol.TextOf(state.resource.Attributes(), attributeServiceName), Address: state.peer,
		State: s.mode(), Since: state.opened, LastSeen: s.lastHeard(), Commands: commands,
		Counters: []agentcontrol.Counter{
			{Name: "events", Unit: "{event}", Value: int64(state.events)},
			{Name: "bytes", Unit: "By", Value: int64(state.bytes)},
			{Name: "breaks", Unit: "{break}", Value: int64(breaks)},
			{Name: "data connections", Unit: "{connection}", Value: state.connections},
			{Name: "send buffers", Unit: "{buffer}", Value: state.sendBuffers},
		},
	}
}

// mode returns the agent's mode. The receiver knows that it is suspended before its next heartbeat.
func (s *steered) mode() string {
	mode := s.control.lastMode()
	// The last heartbeat may be older than the agent's answer to suspend.
	if s.agent.Status().Broken && (mode == bytefrog.ModeTracing || mode == bytefrog.ModeInitializing || mode == bytefrog.ModePaused) {
		mode = bytefrog.ModeSuspended
	}
	return modeAttribute(mode).String()
}

// lastHeard is when a heartbeat or data arrived last.
func (s *steered) lastHeard() time.Time {
	heard := s.opened.Add(time.Duration(s.control.heard.Load()))
	if active := s.lastActive(); active.After(heard) {
		return active
	}
	return heard
}

// Told sends a log record of an order to the pipeline.
func (s *steered) Told(r agentcontrol.Record) {
	if s.logs.sink == nil {
		return
	}
	var attributes []logAttribute
	for _, a := range r.Attributes() {
		attributes = append(attributes, text(a.Key, a.Value))
	}
	s.logs.add(agentcontrol.EventName, r.Severity(), r.Body(), attributes...)
}

// Do carries an order out.
func (s *steered) Do(ctx context.Context, order agentcontrol.Order) (agentcontrol.Answer, error) {
	if err := s.awaitReady(ctx); err != nil {
		return agentcontrol.Answer{}, err
	}
	message, err := s.carryOut(ctx, order.Command)
	if err != nil {
		return agentcontrol.Answer{}, err
	}
	return agentcontrol.Answer{Message: message, Details: []agentcontrol.Detail{
		{Name: "state", Value: s.mode()},
		{Name: "events", Value: strconv.FormatUint(s.stream.Received(), 10)},
	}}, nil
}

func (s *steered) carryOut(ctx context.Context, command string) (message string, err error) {
	switch command {
	case commandSuspend:
		return s.suspend(ctx)
	case commandUnsuspend:
		return s.unsuspend(ctx)
	case commandPause:
		return s.pause(ctx)
	case commandUnpause:
		return s.unpause(ctx)
	default:
		return s.stop(ctx)
	}
}

// awaitReady waits until the agent is prepared for commands. Between start and its first data
// connection it makes its buffers, and a command that it reads then hangs its program.
func (s *steered) awaitReady(ctx context.Context) error {
	select {
	case <-s.agent.Prepared():
	case <-s.leaving:
		return s.errLeft()
	case <-ctx.Done():
	}
	// Several can be ready.
	switch {
	case ctx.Err() == nil:
		return nil
	case s.agent.IsPrepared():
		return agentcontrol.Errorf(agentcontrol.NoAnswer, "request cancelled before the command was sent: %w", context.Cause(ctx))
	default:
		return agentcontrol.Errorf(agentcontrol.NotNow, "the agent obeys commands only after its first class report or event; the command was not sent: %w", context.Cause(ctx))
	}
}

func (s *steered) errLeft() error {
	<-s.leaving
	return agentcontrol.Errorf(agentcontrol.Lost, "the agent is gone, or the receiver is disconnecting from it: %w", s.ending)
}

// await waits until the agent has confirmed a command. The text says what the agent does then.
func (s *steered) await(ctx context.Context, what string, isSo func() bool) error {
	for {
		next := s.agent.Next()
		if isSo() {
			if s.isLeaving() { // the farewell may have caused it
				return s.errLeft()
			}
			return nil
		}
		select {
		case <-next:
		case <-s.leaving:
			return s.errLeft()
		case <-ctx.Done():
			return agentcontrol.Errorf(agentcontrol.NoAnswer, "command sent, but the agent has not confirmed that it %s: %w", what, context.Cause(ctx))
		}
	}
}

// command lets an order happen to the agent, as one step. The order returns the commands that
// have to be sent, or why it is refused.
func (s *steered) command(order func(m *hq.Machine) ([]hq.Command, error)) error {
	var refused error
	err := s.agent.Do(func(m *hq.Machine) (commands []hq.Command, _ error) {
		switch {
		case s.isLeaving():
			refused = agentcontrol.Errorf(agentcontrol.Lost, "the receiver is disconnecting from the agent")
		case m.Status().State == hq.Ended:
			refused = agentcontrol.Errorf(agentcontrol.NotNow, "the agent is ending its run, and would take that for an error")
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

// suspend is answered by a data break. A program that is paused goes on first, and stays so: its
// agent can answer only then.
func (s *steered) suspend(ctx context.Context) (string, error) {
	message := "tracing is suspended"
	err := s.command(func(m *hq.Machine) ([]hq.Command, error) {
		switch before := m.Status(); {
		case before.Reasons&hq.Operator != 0:
			message = "tracing was suspended already"
		case before.State == hq.Paused:
			message = "tracing is suspended, and the program, which was paused, goes on"
		}
		return append(m.Suspend(hq.Operator), m.Pause(false)...), nil
	})
	if err != nil {
		return "", err
	}
	err = s.await(ctx, "suspended tracing", func() bool {
		switch now := s.agent.Status(); {
		case now.Broken:
			return true
		case now.Reasons&hq.Operator != 0:
			return false
		}
		message = "somebody else had tracing go on meanwhile"
		return true
	})
	return message, err
}

// unsuspend is seen in the agent's heartbeats, or in events. The agent is sent unsuspend when it
// has answered suspend, and when the pipeline has accepted all batches that were held.
func (s *steered) unsuspend(ctx context.Context) (string, error) {
	suspended := false
	err := s.command(func(m *hq.Machine) ([]hq.Command, error) {
		suspended = m.Status().State.IsSuspended()
		return m.Resume(hq.Operator), nil
	})
	if err != nil {
		return "", err
	}
	if !suspended {
		return "tracing was not suspended", nil
	}
	s.resumeAfterOverload()
	var now hq.Status
	if err := s.await(ctx, "answered suspend, so that it can go on", func() bool {
		now = s.agent.Status()
		return now.Reasons&(hq.Operator|hq.Overload) != 0 || !now.State.IsSuspended()
	}); err != nil {
		return "", err
	}
	switch {
	case now.Reasons&hq.Operator != 0:
		return "somebody else had tracing suspended meanwhile", nil
	case now.Reasons&hq.Overload != 0:
		return "tracing goes on when the pipeline has accepted what is held", nil
	}
	return s.awaitTracing(ctx)
}

// awaitTracing waits for a sign that an agent which was sent unsuspend traces again: a heartbeat
// that says so, or one after new events.
func (s *steered) awaitTracing(ctx context.Context) (string, error) {
	heartbeats, events := s.suspensions.heartbeats.Load(), s.suspensions.events.Load()
	message := "tracing goes on"
	err := s.await(ctx, "traces again", func() bool {
		if s.control.heartbeats.Load() > heartbeats && (s.control.lastMode() != bytefrog.ModeSuspended || s.stream.Received() > events) {
			return true
		}
		if s.agent.Status().Reasons == 0 {
			return false
		}
		message = "tracing was suspended again meanwhile"
		return true
	})
	return message, err
}

// pause is seen in the agent's heartbeats. It is refused while tracing is suspended, or will be.
func (s *steered) pause(ctx context.Context) (string, error) {
	message := "the program is paused"
	err := s.command(func(m *hq.Machine) ([]hq.Command, error) {
		switch now := m.Status(); {
		case now.State == hq.Paused:
			message = "the program was paused already"
			return nil, nil
		case now.Reasons&hq.Operator != 0:
			return nil, agentcontrol.Errorf(agentcontrol.NotNow, "tracing is suspended, and the agent would end it for good: send unsuspend first")
		case now.Reasons&hq.Overload != 0, now.State.IsSuspended():
			return nil, agentcontrol.Errorf(agentcontrol.NotNow, "tracing is suspended until the pipeline has accepted the batches that are held, and the agent would end it for good: try again then")
		}
		return m.Pause(true), nil
	})
	if err != nil {
		return "", err
	}
	err = s.await(ctx, "paused the program", func() bool {
		if s.control.lastMode() == bytefrog.ModePaused {
			return true
		}
		if s.agent.IsPauseWanted() {
			return false
		}
		message = "somebody else had the program go on meanwhile"
		return true
	})
	return message, err
}

// unpause is sent to an agent that was sent pause, or whose heartbeat says that its program is
// paused. Any other agent takes it for an error, at which it ends tracing for good. An agent that
// waits for the end of an overload is suspended then.
func (s *steered) unpause(ctx context.Context) (string, error) {
	var heartbeats uint64
	running := false
	err := s.command(func(m *hq.Machine) ([]hq.Command, error) {
		running = m.Status().State != hq.Paused
		if running {
			return nil, nil
		}
		heartbeats = s.control.heartbeats.Load()
		return m.Pause(false), nil
	})
	if err != nil {
		return "", err
	}
	if running {
		return "the program was not paused", nil
	}
	message := "the program goes on"
	err = s.await(ctx, "let the program go on", func() bool {
		if s.control.heartbeats.Load() > heartbeats && s.control.lastMode() != bytefrog.ModePaused {
			return true
		}
		if !s.agent.IsPauseWanted() {
			return false
		}
		message = "somebody else had the program paused meanwhile"
		return true
	})
	return message, err
}

// stop ends with the run. A program that is paused goes on first: it could not send its buffers.
func (s *steered) stop(ctx context.Context) (string, error) {
	if err := s.command(func(m *hq.Machine) ([]hq.Command, error) { return m.Stop(), nil }); err != nil {
		return "", err
	}
	err := s.await(ctx, "ends its run", func() bool { return s.control.lastMode() == bytefrog.ModeShuttingDown })
	if agentcontrol.ReasonOf(err) == agentcontrol.Lost && err != nil {
		err = nil // it has gone, as ordered
	}
	return "tracing is over", err
}
