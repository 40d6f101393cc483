// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// Names of commands that are not tasks, and of their argument.
const (
	orderList  = "list"
	orderEnd   = "end"
	orderReset = "reset"

	argumentTask = session.ArgumentTask
)

// startable are the tasks of single calls that an operator can start, by the names of their commands.
var startable = map[string]task.Kind{
	task.Trace.String(): task.Trace, task.Stack.String(): task.Stack, task.Records.String(): task.Records,
}

// commands returns the commands for operators. It omits tasks without a pipeline.
func (e *environment) commands() (all []agentcontrol.Command) {
	add := func(kind task.Kind, summary string, more agentcontrol.Parameter) {
		if e.forwards(kind) {
			all = append(all, agentcontrol.Command{Name: kind.String(), Summary: summary, Parameters: append(task.TargetParameters(), more)})
		}
	}
	add(task.Monitor, "Count the calls of methods, until the task or the collector ends.", task.CycleParameter)
	add(task.Trace, "Report calls of methods with the calls inside them. GP has no such command.", task.LimitParameter)
	add(task.Stack, "Report the callers of methods.", task.LimitParameter)
	add(task.Records, "Record calls, with parameters and results in the program's memory. By GP: report calls that any client has recorded, unless an earlier list had them.", task.RecordsParameter)
	return append(all,
		agentcontrol.Command{Name: orderList, Summary: "List the tasks that were started, or are configured, with their state."},
		agentcontrol.Command{Name: orderEnd, Summary: "End a task. A configured one rests until it is started again.", Parameters: []agentcontrol.Parameter{
			{Name: argumentTask, Summary: "Its number in the list.", Kind: agentcontrol.Integer, Required: true, Least: 1, Most: math.MaxInt32},
		}},
		agentcontrol.Command{Name: orderReset, Summary: "Restore classes: remove the code of all commands of all clients. The receiver ends its commands for it, and sends them again.", Parameters: []agentcontrol.Parameter{
			task.ClassesParameter("Names of classes by GP; default: all. A console restores all classes."),
			task.RegexpParameter("It is one of Java's regular expressions."),
		}},
	)
}

// steered is a configured server for the extension agent_control. Its process may change.
type steered struct {
	*server
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
		Tracer: metadata.Type.String(), Receiver: s.env.ID, Address: s.config.Endpoint,
		Service: s.origin().ServiceName(),
		State:   s.phase.String(), Commands: s.commands,
	}
	if s.output == nil {
		return now
	}
	p := s.output.process.Summary()
	now.Process.PID = uint64(s.pid)
	now.Since = s.output.origin.Begun
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
		return s.output.origin
	}
	return s.newOrigin(session.Identity{}, s.env.Now())
}

// SendRecord forwards a log record of an order.
func (s *steered) SendRecord(r agentcontrol.Record) {
	s.mu.Lock()
	of := s.origin()
	s.mu.Unlock()
	s.env.logs.Forward(of, agentcontrol.EventName, r.Body(), r.Severity(), func(m pcommon.Map) {
		for _, a := range r.Attributes() {
			m.PutStr(a.Key, a.Value)
		}
	})
}

// newOrder checks an order like the configuration.
func newOrder(ctx context.Context, wanted agentcontrol.Order) (*session.Order, error) {
	arguments := wanted.Arguments
	target := task.TargetOf(arguments)
	var started *task.Task
	var err error
	switch wanted.Command {
	case orderList:
		return session.NewOrder(ctx, session.List), nil
	case orderEnd:
		o := session.NewOrder(ctx, session.End)
		number, _ := arguments.Integer(argumentTask)
		o.Number = int(number)
		return o, nil
	case orderReset:
		if target.Class == "" {
			target.Class = "*"
		}
		o := session.NewOrder(ctx, session.Reset)
		o.Classes.Regexp = target.Regexp
		o.Classes.Pattern, err = task.Pattern("arguments.class", target.Class, "com.example.*")
		return o, err
	case task.Monitor.String():
		monitor := task.MonitorOf(arguments)
		started, err = monitor.Task("arguments")
	default:
		calls := task.CallsOf(arguments)
		started, err = calls.Task("arguments", startable[wanted.Command])
	}
	o := session.NewOrder(ctx, session.Start)
	o.Task = *started
	return o, err
}

// Do passes an order to the goroutine of the server, and waits for its result.
func (s *steered) Do(ctx context.Context, wanted agentcontrol.Order) (agentcontrol.Answer, error) {
	o, err := newOrder(ctx, wanted)
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
