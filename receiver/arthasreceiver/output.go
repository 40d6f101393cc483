// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"cmp"
	"errors"
	"net/url"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	methodsession "github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/task"
)

// output forwards the results of one server. It implements [session.Output].
type output struct {
	env    *environment
	config *ServerConfig
	logger *zap.Logger
	health *serverhealth.Part
	// failing and connects are log lines that a server can cause very often.
	failing  logline.Burst
	connects logline.Seldom

	mu sync.Mutex
	// reason is the last failure of the server.
	reason string
	// problems has the last problem of each task that does not run.
	problems map[*task.Task]string
	// life is the process, or nil before the first one.
	life      *life
	connected bool
	// unreported means that no collection of metrics has included the process since the last connection.
	unreported bool
}

// life is the process of results.
type life struct {
	origin *signals.Origin
	since  time.Time
	sums   *process.Process
	// dashboard and properties are the last state of the JVM, or nil.
	dashboard  *arthas.Dashboard
	properties *arthas.JVM
}

func newOutput(env *environment, config *ServerConfig, logger *zap.Logger) *output {
	return &output{env: env, config: config, logger: logger, health: env.Health.Server(config.Endpoint), problems: map[*task.Task]string{}}
}

// Began begins a process, or continues it.
func (o *output) Began(p session.Process, isNew bool) {
	o.mu.Lock()
	restarted := isNew && o.life != nil
	if isNew {
		if restarted && o.unreported {
			o.env.metrics.Ended(o.snapshot(true))
		}
		o.life = o.newLife(p)
	}
	o.life.since, o.connected, o.unreported, o.reason = o.env.Now(), true, true, ""
	current := o.life
	o.mu.Unlock()
	o.failing.Over()
	o.health.Up()
	o.env.LogSeldom(&o.connects, o.logger.Info, "Connected to the server", zap.String("version", text.Short(p.Version)), zap.Int64("pid", p.PID))
	o.env.logs.ServerConnected(current.origin)
	if restarted {
		o.env.counters.Restarted()
		o.env.logs.ServerRestarted(current.origin, "The server is attached to another process")
	}
}

func (o *output) newLife(p session.Process) *life {
	env := o.env
	of := signals.Server{
		Tracer: metadata.Type.String(), Endpoint: addressOf(o.config.Endpoint), ServiceName: cmp.Or(o.config.ServiceName, env.config.ServiceName), Host: env.Host,
	}
	who := methodsession.Identity{PID: p.PID, Host: text.Short(p.Host), Version: p.Version}
	return &life{
		origin: of.Origin(env.config.Resource(), who, env.Now()),
		sums: process.New(process.Settings{
			MaxMethods: env.config.Limits.MaxMethods, MethodsSetting: "limits.max_methods", MaxTreeNodes: env.config.Limits.MaxTreeNodes,
			Counters: env.counters, Logger: o.logger, Now: env.Now,
		}),
	}
}

// addressOf returns the host and port of an endpoint.
func addressOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint // Validate has checked it
	}
	return u.Host
}

// Lost reports that the server is lost. Only the first failure of a burst, and one with another reason, is logged.
func (o *output) Lost(why error) {
	o.mu.Lock()
	was, other := o.connected, o.reason != why.Error()
	o.connected, o.reason = false, why.Error()
	current := o.life
	o.mu.Unlock()
	if was {
		o.env.logs.ServerGone(current.origin, current.since, why)
	}
	if o.env.run.IsStopping() {
		return
	}
	o.health.Failed(why)
	if since, due := o.failing.Count(o.env.Now()); due || other {
		o.logger.Warn("The server cannot be reached, or was lost. The receiver tries again", zap.Error(why), zap.Int("times_since_last_line", since))
	}
}

// Count changes a count of the server.
func (o *output) Count(what session.Count, n int64) { o.env.counters.Count(what, n) }

// Problem reports that a task does not run: once until it runs, or has another problem.
func (o *output) Problem(t *task.Task, unmatched bool, why error) {
	o.mu.Lock()
	known := o.problems[t] == why.Error()
	o.problems[t] = why.Error()
	current := o.life
	o.mu.Unlock()
	if known {
		return
	}
	problem, message := methodsession.Refused, "The server did not run a command. The receiver tries it again"
	if unmatched {
		problem, message = methodsession.Unmatched, "A pattern matches no class or method, or its expression is wrong. The receiver tries it again"
	}
	o.logger.Warn(message, zap.Stringer("command", t.Kind), zap.String("pattern", t.Pattern), zap.Error(why))
	o.env.logs.Problem(current.origin, problem, commandOf(t), why)
}

// solved forgets the problem of a task that runs.
func (o *output) solved(t *task.Task) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.problems, t)
}

// Released lets other monitors count the methods of an ended one.
func (o *output) Released(t *task.Task) { o.current().sums.ReleaseMethods(t.Number) }

func (o *output) current() *life {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.life
}

// JVM stores the state of the JVM for the next collection.
func (o *output) JVM(dashboard *arthas.Dashboard, properties *arthas.JVM) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.life.dashboard, o.life.properties = dashboard, properties
}

// Result forwards a result of a task.
func (o *output) Result(t *task.Task, result arthas.Result, received session.Received) {
	l := o.current()
	switch r := result.(type) {
	case *arthas.Enhanced:
		switch {
		case r.OverLimit != "":
			o.Problem(t, false, errors.New(r.OverLimit))
		case r.Success:
			o.solved(t)
		}
	case *arthas.Monitor:
		l.sums.Rows(process.Monitor{Number: t.Number, Cycle: t.Cycle}, rows(r, received.At), false)
		l.sums.LogLimits()
	case *arthas.Trace:
		tree, ok := newTree(r, received)
		if !ok {
			o.env.counters.TreeLeftOut()
			return
		}
		if dropped := o.env.spans.Tree(l.origin, tree, o.env.config.Limits.MaxTreeNodes); dropped > 0 {
			l.sums.NodesDropped(dropped)
		}
	case *arthas.CallStack:
		o.stack(l, t, r, received)
	case *arthas.Watch:
		o.watch(l, t, r, received)
	case *arthas.Records:
		for i := range r.Calls {
			o.record(l, t, &r.Calls[i], received)
		}
	}
}

// rows returns the rows of a cycle. The server's time is that of the last call, so the time of receipt is the end of the
// cycle. A cycle with an unknown duration adds its calls and no
// time, and has no mean.
func rows(m *arthas.Monitor, at time.Time) []javamethods.MethodStatistics {
	all := make([]javamethods.MethodStatistics, 0, len(m.Methods))
	for i := range m.Methods {
		of := &m.Methods[i]
		if of.Calls <= 0 {
			continue
		}
		row := javamethods.MethodStatistics{
			Time: at, Class: of.Class, Method: of.Method, Calls: of.Calls, Succeeded: of.Succeeded, Failed: of.Failed, HasMean: of.Sum.Known, HasSum: true,
		}
		if of.Sum.Known {
			row.Sum, row.Mean = of.Sum.Duration, of.Sum.Duration/time.Duration(of.Calls)
		}
		all = append(all, row)
	}
	return all
}

// state returns a snapshot for metrics, if there is one: of the present, or once more the last one.
func (o *output) state() (processState, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.life == nil || !o.connected && !o.unreported:
		return processState{}, false
	case !o.connected:
		o.unreported = false
	}
	return o.snapshot(!o.connected), true
}

// snapshot returns the state of the process. over means that it is not connected. The caller holds the lock.
func (o *output) snapshot(over bool) processState {
	s := processState{origin: o.life.origin, methods: o.life.sums.State().Methods}
	if !over {
		s.dashboard, s.properties = o.life.dashboard, o.life.properties
	}
	return s
}

var _ session.Output = (*output)(nil)

// at returns the instant of a server's time, or zero if it is not known. A time that is far from the receipt shows a
// wrong clock or zone.
func at(of arthas.Timestamp, received session.Received) time.Time {
	const far = 24 * time.Hour
	if of.IsZero() || received.Zone == nil {
		return time.Time{}
	}
	t := of.In(received.Zone)
	if d := received.At.Sub(t); d > far || d < -far {
		return time.Time{}
	}
	return t
}
