// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/bytefrog"
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

// commands are what an agent can be told. Stop ends tracing and lets the program run on
// where it was measured; by the protocol's document it ends the program.
//
// The agent takes each of the others in one mode only, and ends its tracing where it reads
// one in another: suspend and pause while it traces, unsuspend while it is suspended, unpause
// while it is paused. So none is sent that doesn't fit (order).
var commands = []agentcontrol.Command{
	{Name: commandSuspend, Summary: "Stop tracing until unsuspend. The program runs on, also where it was paused; the data has a break."},
	{Name: commandUnsuspend, Summary: "Go on tracing after suspend."},
	{Name: commandPause, Disruptive: true, Summary: "Halt the traced program until unpause. Not while tracing is suspended."},
	{Name: commandUnpause, Summary: "Let the traced program go on after pause."},
	{Name: commandStop, Disruptive: true, Summary: "End tracing for good. Java's agent lets its program run on; by the protocol's document the program ends."},
}

// steered is a run as the extension agent_control has it.
type steered struct {
	*run
	id string
}

// newSteered gives the agent of a run that was started to whoever steers it.
func newSteered(r *run, receiver string) *steered {
	return &steered{run: r, id: agentcontrol.NewID(receiver, r.streamID.String())}
}

// ID is that of the run.
func (s *steered) ID() string { return s.id }

// Snapshot is what is known of the agent.
func (s *steered) Snapshot() agentcontrol.Snapshot {
	state := s.run.state()
	var breaks uint64
	for _, n := range state.breaks {
		breaks += n
	}
	return agentcontrol.Snapshot{
		Tracer: metadata.Type.String(), Receiver: s.env.receiver, Service: agentcontrol.TextOf(state.resource.Attributes(), attributeServiceName), Address: state.peer,
		State: s.word(), Since: state.opened, LastSeen: s.lastHeard(), Commands: commands,
		Counters: []agentcontrol.Counter{
			{Name: "events", Unit: "{event}", Value: int64(state.events)},
			{Name: "bytes", Unit: "By", Value: int64(state.bytes)},
			{Name: "breaks", Unit: "{break}", Value: int64(breaks)},
			{Name: "data connections", Unit: "{connection}", Value: state.connections},
			{Name: "send buffers", Unit: "{buffer}", Value: state.sendBuffers},
		},
	}
}

// word is the state of the agent. That it is suspended is known before its next heartbeat.
func (s *steered) word() string {
	mode := s.control.lastMode()
	_, suspended := s.tracing.brokenAt()
	// The last heartbeat may be of before it suspended. A paused agent can't have answered suspend.
	if suspended && (mode == bytefrog.ModeTracing || mode == bytefrog.ModeInitializing || mode == bytefrog.ModePaused) {
		mode = bytefrog.ModeSuspended
	}
	return modeAttribute(mode).String()
}

// lastHeard is when anything came last.
func (s *steered) lastHeard() time.Time {
	heard := s.opened.Add(time.Duration(s.control.heard.Load()))
	if active := s.lastActive(); active.After(heard) {
		return active
	}
	return heard
}

// Told hands on a log record of an order.
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

// Do has the agent do something.
func (s *steered) Do(ctx context.Context, order agentcontrol.Order) (agentcontrol.Answer, error) {
	if err := s.awaitReady(ctx); err != nil {
		return agentcontrol.Answer{}, err
	}
	message, err := s.carryOut(ctx, order.Command)
	if err != nil {
		return agentcontrol.Answer{}, err
	}
	return agentcontrol.Answer{Message: message, Details: []agentcontrol.Detail{
		{Name: "state", Value: s.word()},
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

// awaitReady waits until the agent is prepared for commands: between start and its first data
// connection it makes its buffers, and a command that it reads then hangs its program.
func (s *steered) awaitReady(ctx context.Context) error {
	select {
	case <-s.tracing.prepared:
	case <-s.leaving:
		return s.errLeft()
	case <-ctx.Done():
	}
	// Of several that can be, any is chosen.
	switch {
	case ctx.Err() == nil:
		return nil
	case isClosed(s.tracing.prepared):
		return agentcontrol.Errorf(agentcontrol.NoAnswer, "request cancelled before the command was sent: %w", context.Cause(ctx))
	default:
		return agentcontrol.Errorf(agentcontrol.NotNow, "the agent has shown no class and no event yet, and takes no command before; the command was not sent: %w", context.Cause(ctx))
	}
}

func (s *steered) errLeft() error {
	<-s.leaving
	return agentcontrol.Errorf(agentcontrol.Lost, "the agent is gone, or is being left: %w", s.ending)
}

// await waits until what is said of the agent is so.
func (s *steered) await(ctx context.Context, what string, isSo func() bool) error {
	for {
		next := s.signs.next()
		if isSo() {
			if s.isLeaving() { // it may be so by how the agent is left
				return s.errLeft()
			}
			return nil
		}
		select {
		case <-next:
		case <-s.leaving:
			return s.errLeft()
		case <-ctx.Done():
			return agentcontrol.Errorf(agentcontrol.NoAnswer, "the agent was told; that it %s has not been heard of it yet: %w", what, context.Cause(ctx))
		}
	}
}

// order decides what the agent is told, and sends it: under the lock, so that orders leave in
// the sequence in which they were decided. Decide gives none where there is nothing to tell.
// Whoever waits for what others take back by it hears so. The agent reads orders one after
// the other, so a mode holds from the moment in which its order was sent.
func (s *steered) order(decide func(t *tracing) ([]bytefrog.MessageType, error)) error {
	t := &s.tracing
	t.mu.Lock()
	defer t.mu.Unlock()
	defer s.signs.give()
	if t.over {
		return agentcontrol.Errorf(agentcontrol.Lost, "the agent is being left")
	}
	if s.tracesNoMore() {
		return agentcontrol.Errorf(agentcontrol.NotNow, "the agent is ending its run, and would take that for an error")
	}
	orders, err := decide(t)
	if err != nil {
		return err
	}
	for _, of := range orders {
		t.steered = true
		if err := s.control.send(bytefrog.Command{Of: of}); err != nil {
			return agentcontrol.Errorf(agentcontrol.Lost, "the agent could not be told: %w", err)
		}
	}
	return nil
}

// suspend is answered by a data break. A program that is paused goes on first: its agent can
// answer only then.
func (s *steered) suspend(ctx context.Context) (string, error) {
	message := "tracing is suspended"
	err := s.order(func(t *tracing) ([]bytefrog.MessageType, error) {
		if t.ordered {
			message = "tracing was suspended already"
		}
		t.ordered = true
		if _, first := t.ask(s.env.now()); !first {
			return nil, nil
		}
		if !s.saysPaused() {
			return []bytefrog.MessageType{bytefrog.TypeSuspend}, nil
		}
		t.paused = false
		message = "tracing is suspended, and the program, which was paused, goes on"
		return []bytefrog.MessageType{bytefrog.TypeUnpause, bytefrog.TypeSuspend}, nil
	})
	if err != nil {
		return "", err
	}
	err = s.await(ctx, "suspended tracing", func() bool {
		if _, answered := s.tracing.brokenAt(); answered {
			return true
		}
		if s.tracing.isOrdered() {
			return false
		}
		message = "somebody else had tracing go on meanwhile"
		return true
	})
	return message, err
}

// unsuspend is seen in the agent's heartbeats, or in events. The agent is told when it has
// answered suspend, and when the pipeline has accepted what was held.
func (s *steered) unsuspend(ctx context.Context) (string, error) {
	suspended := false
	err := s.order(func(t *tracing) ([]bytefrog.MessageType, error) {
		suspended = t.isSuspended()
		t.ordered = false
		return nil, nil
	})
	if err != nil {
		return "", err
	}
	if !suspended {
		return "tracing was not suspended", nil
	}
	s.resume()
	var overloaded, ordered bool
	var beats, events uint64
	if err := s.await(ctx, "answered suspend, so that it can go on", func() bool {
		t := &s.tracing
		t.mu.Lock()
		defer t.mu.Unlock()
		overloaded, ordered, beats, events = t.overloaded, t.ordered, t.beats, t.events
		return overloaded || ordered || !t.isSuspended()
	}); err != nil {
		return "", err
	}
	switch {
	case ordered:
		return "somebody else had tracing suspended meanwhile", nil
	case overloaded:
		return "tracing goes on when the pipeline has accepted what is held", nil
	}
	message := "tracing goes on"
	err = s.await(ctx, "traces again", func() bool {
		if s.control.heartbeats.Load() > beats && (s.control.lastMode() != bytefrog.ModeSuspended || s.stream.Received() > events) {
			return true
		}
		if !s.tracing.isWantedSuspended() {
			return false
		}
		message = "tracing was suspended again meanwhile"
		return true
	})
	return message, err
}

// pause is seen in the agent's heartbeats. It is refused while tracing is suspended, or on its
// way back.
func (s *steered) pause(ctx context.Context) (string, error) {
	message := "the program is paused"
	err := s.order(func(t *tracing) ([]bytefrog.MessageType, error) {
		switch {
		case s.saysPaused():
			t.paused = true
			message = "the program was paused already"
			return nil, nil
		case t.ordered:
			return nil, agentcontrol.Errorf(agentcontrol.NotNow, "tracing is suspended, and the agent would end it for good: send unsuspend first")
		case t.overloaded, t.isSuspended():
			return nil, agentcontrol.Errorf(agentcontrol.NotNow, "tracing is suspended until the pipeline has accepted the batches that are held, and the agent would end it for good: try again then")
		}
		t.paused = true
		return []bytefrog.MessageType{bytefrog.TypePause}, nil
	})
	if err != nil {
		return "", err
	}
	err = s.await(ctx, "paused the program", func() bool {
		if s.control.lastMode() == bytefrog.ModePaused {
			return true
		}
		if s.tracing.isPaused() {
			return false
		}
		message = "somebody else had the program go on meanwhile"
		return true
	})
	return message, err
}

// unpause is sent to an agent that was told to pause, or that says that its program is paused.
// Any other takes it for an error, at which it ends tracing for good. One that the pipeline is
// too slow for is suspended then.
func (s *steered) unpause(ctx context.Context) (string, error) {
	var beats uint64
	running := false
	err := s.order(func(t *tracing) ([]bytefrog.MessageType, error) {
		running = !s.saysPaused()
		if running {
			return nil, nil
		}
		t.paused, beats = false, s.control.heartbeats.Load()
		return []bytefrog.MessageType{bytefrog.TypeUnpause}, nil
	})
	if err != nil {
		return "", err
	}
	if running {
		return "the program was not paused", nil
	}
	s.suspendOverloaded()
	message := "the program goes on"
	err = s.await(ctx, "let the program go on", func() bool {
		if s.control.heartbeats.Load() > beats && s.control.lastMode() != bytefrog.ModePaused {
			return true
		}
		if !s.tracing.isPaused() {
			return false
		}
		message = "somebody else had the program paused meanwhile"
		return true
	})
	return message, err
}

// stop ends with the run. A program that is paused could not send what it has.
func (s *steered) stop(ctx context.Context) (string, error) {
	err := s.order(func(t *tracing) ([]bytefrog.MessageType, error) {
		t.stopped = true
		if s.saysPaused() {
			t.paused = false
			return []bytefrog.MessageType{bytefrog.TypeUnpause, bytefrog.TypeStop}, nil
		}
		return []bytefrog.MessageType{bytefrog.TypeStop}, nil
	})
	if err != nil {
		return "", err
	}
	err = s.await(ctx, "ends its run", func() bool { return s.control.lastMode() == bytefrog.ModeShuttingDown })
	if agentcontrol.ReasonOf(err) == agentcontrol.Lost && err != nil {
		err = nil // it has gone, which was wanted
	}
	return "tracing is over", err
}
