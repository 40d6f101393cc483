// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	_ "time/tzdata" // time zones, where the machine has none

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/task"
)

// greysReceiver asks servers: one for each component ID, however many signals have a
// pipeline.
type greysReceiver struct {
	env      *environment
	settings receiver.Settings

	started bool
	servers []*server
	// unsteer has servers shown no more.
	unsteer   []func()
	following sync.WaitGroup
	// stop ends the following of servers, leave the time for leaving them as they were found,
	// and cancel that of the shutdown.
	stop, cancel context.CancelFunc
	leave        context.CancelCauseFunc
}

// environment is what all servers share.
type environment struct {
	config *Config
	// eventsOff are the log records that are switched off, by their event names.
	eventsOff map[string]bool
	// id is the receiver's.
	id       string
	build    component.BuildInfo
	logger   *zap.Logger
	counters *counters.Counters
	observer *receiverhelper.ObsReport
	// zone is that of servers, which say times without one.
	zone *time.Location
	// spans and logs are nil where no pipeline takes them.
	spans   *handover.Spans[spanParcel]
	logs    *handover.Logs[logParcel]
	metrics *metricsLoop
	// measured says that a pipeline takes metrics.
	measured bool
	// health is the component's, of all servers.
	health *serverhealth.Health
	// memory has the accounts of servers; nil: the receiver was not started.
	memory *budget.Group
	// ctx is cancelled when the time of the shutdown is over, and asking when that for all that
	// is asked of servers is, which is the first half of it: the other half is for what is in
	// memory, of all servers, whichever of them hangs.
	ctx, asking context.Context
	hooks
}

// hooks are what tests set.
type hooks struct {
	// host is the name of this machine; empty: it has none.
	host string
	now  func() time.Time
	// connect makes a link to a server. spoke is the protocol of the last link; empty: unknown.
	connect func(ctx context.Context, s *server, spoke Protocol) (*link.Link, error)
	// repeatAfter is when lasting failures are logged again, silentAfter when silent servers are.
	repeatAfter, silentAfter time.Duration
}

func dial(ctx context.Context, s *server, spoke Protocol) (*link.Link, error) {
	return s.dialer.Connect(ctx, spoke)
}

func newReceiver(settings receiver.Settings, config *Config) (*greysReceiver, error) {
	health := serverhealth.New()
	own, err := counters.New(ownmetrics.Of(component.KindReceiver, settings.ID, settings.TelemetrySettings), health)
	if err != nil {
		return nil, err
	}
	observer, err := handover.NewObserver(settings, "tcp")
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(config.Timezone)
	if err != nil {
		return nil, fmt.Errorf("timezone: %w", err)
	}
	// A machine without a name goes without.
	host, _ := os.Hostname()
	return &greysReceiver{
		settings: settings,
		env: &environment{
			config:    config,
			eventsOff: eventswitch.Off(config.Events),
			id:        settings.ID.String(),
			build:     settings.BuildInfo,
			logger:    settings.Logger,
			counters:  own,
			observer:  observer,
			health:    health,
			zone:      zone,
			hooks:     hooks{host: host, now: time.Now, connect: dial, repeatAfter: usualRepeatAfter, silentAfter: usualSilentAfter},
		},
	}, nil
}

// Start begins to follow the servers. That one can't be reached is no error: it is tried
// again. That there is nothing to ask for is one, where nobody can have it started.
func (r *greysReceiver) Start(ctx context.Context, host component.Host, next sharedreceiver.Signals) error {
	env := r.env
	agents := agentcontrol.Of(host)
	if len(agents) == 0 && env.config.asksNothing() {
		return errNothing
	}
	secure := make([]*tls.Config, len(env.config.Servers))
	for i := range env.config.Servers {
		config := env.config.Servers[i].TLS.Get()
		if config == nil {
			continue
		}
		var err error
		if secure[i], err = config.LoadTLSConfig(ctx); err != nil {
			return fmt.Errorf("servers[%d].tls: %w", i, err)
		}
	}
	// The context of Start is over before the receiver is.
	env.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	env.asking, r.leave = context.WithCancelCause(env.ctx)
	following, stop := context.WithCancel(env.asking)
	r.stop = stop
	env.memory = budget.Of(host).Group(env.id)
	r.open(next, secure)
	r.started = true
	env.health.Start(host)
	r.steer(following, agents)
	for _, s := range r.servers {
		env.logger.Info("Following a Greys server", zap.String("endpoint", s.config.Endpoint))
		r.following.Go(func() { s.follow(following) })
	}
	return nil
}

var errNothing = errors.New("monitors, traces, stacks, tt, classes and methods are empty: set one of them to what is to be asked for, or configure the extension agent_control, by which somebody can")

// open makes what hands on each signal that has a pipeline, and the servers.
func (r *greysReceiver) open(next sharedreceiver.Signals, secure []*tls.Config) {
	env := r.env
	if next.Traces != nil {
		env.spans = newSpans(env, next.Traces)
	}
	if next.Logs != nil {
		env.logs = newLogSink(env, next.Logs)
	}
	env.measured = next.Metrics != nil
	for i := range env.config.Servers {
		r.servers = append(r.servers, newServer(env, &env.config.Servers[i], secure[i]))
	}
	env.metrics = newMetricsLoop(env, r.settings, next.Metrics, r.living)
}

// forwards reports whether a pipeline takes the results of a kind of task. Without one the program
// is left alone.
func (e *environment) forwards(kind task.Kind) bool {
	switch kind {
	case task.Monitor:
		return e.measured
	case task.Trace, task.Records, task.RecordList:
		return e.spans != nil
	default:
		return e.logs != nil
	}
}

// living returns the states of all processes that are connected, or were since the last call.
func (r *greysReceiver) living() (states []processState) {
	for _, s := range r.servers {
		if state, ok := s.state(); ok {
			states = append(states, state)
		}
	}
	return states
}

// overtime is how much longer than shutdown_timeout a shutdown may take for what doesn't
// depend on the pipeline.
const overtime = 2 * time.Second

// Shutdown leaves servers as they were found, and hands on what is in memory, for at most
// shutdown_timeout; then what is left is dropped and counted.
func (r *greysReceiver) Shutdown(ctx context.Context) error {
	defer r.env.counters.Shutdown()
	if !r.started {
		return nil
	}
	r.env.health.Stop()
	r.stop()
	for _, end := range r.unsteer {
		end()
	}
	half := time.AfterFunc(r.env.config.ShutdownTimeout/2, func() { r.leave(session.ErrShutdownTime) })
	defer half.Stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.following.Wait()
		r.env.close()
	}()
	if !handover.Finish(ctx, over, r.env.config.ShutdownTimeout, overtime, r.cancel) {
		return fmt.Errorf("the pipeline, or a server, has not returned %v after shutdown_timeout", overtime)
	}
	return nil
}

// close hands on what is in memory, each signal for itself.
func (e *environment) close() {
	var closing sync.WaitGroup
	closing.Go(e.metrics.Close)
	if e.spans != nil {
		closing.Go(e.spans.Close)
	}
	if e.logs != nil {
		closing.Go(e.logs.Close)
	}
	closing.Wait()
}
