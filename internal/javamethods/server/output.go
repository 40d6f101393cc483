// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// State is a snapshot of a process for metrics.
type State struct {
	process.State
	Origin *signals.Origin
	// Over means that the process has ended, or is not connected. Gauges are then unknown.
	Over bool
}

// Output forwards the results of one process. It implements [session.Events].
type Output struct {
	Origin  *signals.Origin
	Process *process.Process

	spans *signals.Spans
	logs  *signals.Logs
	// recordsAsLogs makes recorded calls log records.
	recordsAsLogs bool
}

// state returns a snapshot of the process for metrics. over means that it is not connected.
func (o *Output) state(over bool) State {
	return State{State: o.Process.State(), Origin: o.Origin, Over: over}
}

// Tree forwards a call tree as spans.
func (o *Output) Tree(tree *javamethods.Tree) {
	if dropped := o.spans.Tree(o.Origin, tree, o.Process.MaxTreeNodes); dropped > 0 {
		o.Process.NodesDropped(dropped)
	}
}

// Call forwards a recorded call.
func (o *Output) Call(call *session.Call) {
	if o.recordsAsLogs {
		o.logs.Record(o.Origin, CommandOf(call.Task), call)
	} else {
		o.spans.Call(o.Origin, call)
	}
}

// Watch forwards a watched value as a log record.
func (o *Output) Watch(t *task.Task, w *javamethods.Watch) { o.logs.Watch(o.Origin, CommandOf(t), w) }

// Stack forwards a stack as a log record.
func (o *Output) Stack(t *task.Task, stack *javamethods.CallStack) {
	o.logs.Stack(o.Origin, CommandOf(t), stack)
}

// Class, Method and Gone forward changes of lists as log records.
func (o *Output) Class(t *task.Task, c *javamethods.Class, change process.Change) {
	o.logs.Class(o.Origin, CommandOf(t), c, change)
}

func (o *Output) Method(t *task.Task, m *javamethods.Method, change process.Change) {
	o.logs.Method(o.Origin, CommandOf(t), m, change)
}

func (o *Output) Gone(t *task.Task, name string) {
	if t.Kind == task.Methods {
		o.logs.MethodGone(o.Origin, CommandOf(t), name)
	} else {
		o.logs.ClassGone(o.Origin, CommandOf(t), name)
	}
}

// Problem forwards a problem of a task as a log record.
func (o *Output) Problem(p session.Problem, t *task.Task, why error) {
	o.logs.Problem(o.Origin, p, CommandOf(t), why)
}

// CommandOf returns the command of a task for log records.
func CommandOf(t *task.Task) signals.Command {
	return signals.Command{Name: t.Kind.String(), Pattern: t.Pattern}
}
