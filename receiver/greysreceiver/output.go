// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
)

// environment is the shared state of all servers.
type environment struct {
	*receiverkit.Kit
	config   *Config
	counters *counters.Counters
	// zone is the time zone of servers: they send times without a zone.
	zone *time.Location
	hooks

	// The fields below exist from the start on. spans is nil if no pipeline accepts spans.
	run     *receiverkit.Run
	spans   *signals.Spans
	logs    *signals.Logs
	metrics *metricsLoop
}

// hooks are the parts that tests replace.
type hooks struct {
	// connect returns a new link to a server. spoke is the protocol of the last link; empty means unknown.
	connect func(ctx context.Context, d *link.Dialer, spoke Protocol) (*session.Link, error)
	// repeatAfter is the interval of log lines for lasting failures. silentAfter is the time after which a silent
	// server is reported.
	repeatAfter, silentAfter time.Duration
}

// forwards reports whether a pipeline accepts the results of a kind of task. Without one the receiver does not
// instrument the program.
func (e *environment) forwards(kind task.Kind) bool {
	switch next := &e.run.Next; kind {
	case task.Monitor:
		return next.Metrics != nil
	case task.Trace, task.Records, task.RecordList:
		return next.Traces != nil
	default:
		return next.Logs != nil
	}
}

// output forwards the results of one process. It implements [session.Events].
type output struct {
	env     *environment
	origin  *signals.Origin
	process *process.Process
}

// state returns a snapshot of the process for metrics. over means that it is not connected.
func (o *output) state(over bool) processState {
	return processState{State: o.process.State(), origin: o.origin, over: over}
}

func (o *output) Tree(tree *javamethods.Tree) {
	if dropped := o.env.spans.Tree(o.origin, tree, o.env.config.Limits.MaxTreeNodes); dropped > 0 {
		o.process.NodesDropped(dropped)
	}
}

func (o *output) Call(call *session.Call) { o.env.spans.Call(o.origin, call) }

func (o *output) Stack(t *task.Task, stack *javamethods.CallStack) {
	o.env.logs.Stack(o.origin, commandOf(t), stack)
}

func (o *output) Class(t *task.Task, c *javamethods.Class, change process.Change) {
	o.env.logs.Class(o.origin, commandOf(t), c, change)
}

func (o *output) Method(t *task.Task, m *javamethods.Method, change process.Change) {
	o.env.logs.Method(o.origin, commandOf(t), m, change)
}

func (o *output) Gone(t *task.Task, name string) {
	if t.Kind == task.Methods {
		o.env.logs.MethodGone(o.origin, commandOf(t), name)
	} else {
		o.env.logs.ClassGone(o.origin, commandOf(t), name)
	}
}

func (o *output) Problem(p session.Problem, t *task.Task, why error) {
	o.env.logs.Problem(o.origin, p, commandOf(t), why)
}

// commandOf returns the command of a task for log records.
func commandOf(t *task.Task) signals.Command {
	return signals.Command{Name: t.Kind.String(), Pattern: t.Pattern}
}

func connect(ctx context.Context, d *link.Dialer, spoke Protocol) (*session.Link, error) {
	return d.Connect(ctx, spoke)
}
