// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// Names of commands that start no task, and of the argument of OrderEnd.
const (
	OrderList  = "list"
	OrderEnd   = "end"
	OrderReset = "reset"

	ArgumentTask = session.ArgumentTask
)

// Start is a command with which operators start a task.
type Start struct {
	// Kind is the kind of its tasks. The command has its name.
	Kind       task.Kind
	Summary    string
	Parameters []agentcontrol.Parameter
	// Task checks the arguments like the configuration.
	Task func(agentcontrol.Arguments) (*task.Task, error)
}

// Reset is the command with which operators restore classes.
type Reset struct {
	Summary    string
	Disruptive bool
	Parameters []agentcontrol.Parameter
	// Classes checks the arguments.
	Classes func(agentcontrol.Arguments) (javamethods.Classes, error)
}

// commands returns the commands for operators. It omits tasks without a pipeline.
func (s *Server) commands() (all []agentcontrol.Command) {
	for _, start := range s.Starts {
		if s.Session.IsForwarded(start.Kind) {
			all = append(all, agentcontrol.Command{Name: start.Kind.String(), Summary: start.Summary, Parameters: start.Parameters})
		}
	}
	return append(all,
		agentcontrol.Command{Name: OrderList, Summary: "List the tasks that were started, or are configured, with their state."},
		agentcontrol.Command{Name: OrderEnd, Summary: "End a task. A configured one rests until it is started again.", Parameters: []agentcontrol.Parameter{
			{Name: ArgumentTask, Summary: "Its number in the list.", Kind: agentcontrol.Integer, Required: true, Least: 1, Most: math.MaxInt32},
		}},
		agentcontrol.Command{Name: OrderReset, Summary: s.Reset.Summary, Disruptive: s.Reset.Disruptive, Parameters: s.Reset.Parameters},
	)
}

// Register registers the server at the extensions, before Follow. It returns a function that removes it, or nil without an
// extension.
func (s *Server) Register() (unregister func()) {
	if len(s.Run.Agents) == 0 {
		return nil
	}
	s.orders = make(chan *session.Order)
	return s.Run.Agents.Register(&steered{
		Server: s, id: agentcontrol.NewID(s.Run.ID, s.Endpoint), commands: s.commands(), following: s.Run.Serving,
	})
}

// steered is a configured server for the extension agent_control. Its process may change.
type steered struct {
	*Server
	id       string
	commands []agentcontrol.Command
	// following ends with the receiver's shutdown.
	following context.Context
}

// ID returns an ID that is always the same for a server of a receiver.
func (s *steered) ID() string { return s.id }

// Snapshot returns the present state of the server and its process.
func (s *steered) Snapshot() agentcontrol.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := agentcontrol.Snapshot{
		Tracer: s.Tracer, Receiver: s.Run.ID, Address: s.Endpoint,
		Service: s.origin().ServiceName(),
		State:   s.phase.String(), Commands: s.commands,
	}
	if s.phase != phaseConnected {
		now.Unfit = agentcontrol.NoneFits(s.commands, "the receiver is not connected to the server")
	}
	if s.output == nil {
		return now
	}
	p := s.output.Process.Summary()
	now.Process.PID = uint64(s.pid)
	now.Since = s.output.Origin.Begun
	now.LastSeen = p.LastReply
	now.Counters = []agentcontrol.Counter{
		{Name: "commands running", Unit: "{command}", Value: s.work.Commands()},
		{Name: "replies", Unit: "{reply}", Value: p.Replies},
		{Name: "bad replies", Unit: "{reply}", Value: p.Bad},
		{Name: "missing replies", Unit: "{reply}", Value: p.Missing},
		{Name: "reconnects", Unit: "{connection}", Value: p.Reconnects},
	}
	return now
}

// origin returns the origin of the process. Before the first process it has only configured attributes. The caller
// holds the lock.
func (s *steered) origin() *signals.Origin {
	if s.output != nil {
		return s.output.Origin
	}
	return s.newOrigin(session.Identity{}, s.now())
}

// SendRecord forwards a log record of an order.
func (s *steered) SendRecord(r agentcontrol.Record) {
	s.mu.Lock()
	of := s.origin()
	s.mu.Unlock()
	s.Logs.Forward(of, agentcontrol.EventName, r.Body(), r.Severity(), func(m pcommon.Map) {
		for _, a := range r.Attributes() {
			m.PutStr(a.Key, a.Value)
		}
	})
}

// newOrder checks an order like the configuration.
func (s *steered) newOrder(ctx context.Context, wanted agentcontrol.Order) (o *session.Order, err error) {
	switch wanted.Command {
	case OrderList:
		return session.NewOrder(ctx, session.List), nil
	case OrderEnd:
		o = session.NewOrder(ctx, session.End)
		number, _ := wanted.Arguments.Integer(ArgumentTask)
		o.Number = int(number)
		return o, nil
	case OrderReset:
		o = session.NewOrder(ctx, session.Reset)
		o.Classes, err = s.Reset.Classes(wanted.Arguments)
		return o, err
	}
	for _, start := range s.Starts {
		if start.Kind.String() == wanted.Command {
			started, err := start.Task(wanted.Arguments)
			o = session.NewOrder(ctx, session.Start)
			o.Task = *started
			return o, err
		}
	}
	return nil, agentcontrol.Errorf(agentcontrol.UnknownCommand, "there is no command %q", wanted.Command)
}

// Do passes an order to the goroutine of the server, and waits for its result.
func (s *steered) Do(ctx context.Context, wanted agentcontrol.Order) (agentcontrol.Answer, error) {
	o, err := s.newOrder(ctx, wanted)
	if err != nil {
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.BadArgument, "%w", err)
	}
	switch {
	case s.following.Err() != nil:
		return agentcontrol.Answer{}, errLeaving
	case ctx.Err() != nil:
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NoAnswer, "request cancelled before the command was sent: %w", context.Cause(ctx))
	}
	select {
	case s.orders <- o:
	case <-s.following.Done():
		return agentcontrol.Answer{}, errLeaving
	case <-ctx.Done():
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NoAnswer, "the receiver is connecting to the server, or waits for a reply: the command was not sent: %w", context.Cause(ctx))
	}
	select {
	case result := <-o.Result():
		// A command that the shutdown ends is not sent again.
		if agentcontrol.ReasonOf(result.Err) == agentcontrol.NoAnswer && s.following.Err() != nil {
			return agentcontrol.Answer{}, errLeaving
		}
		return result.Answer, result.Err
	case <-s.following.Done():
		return agentcontrol.Answer{}, errLeaving
	case <-ctx.Done():
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NoAnswer, "no result yet: the command was sent to the server, or will be: %w", context.Cause(ctx))
	}
}

var errLeaving = agentcontrol.Errorf(agentcontrol.Lost, "the receiver is disconnecting from the server: %w", session.ErrShutdown)
