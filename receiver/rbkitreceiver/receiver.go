// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

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
)

// rbkitReceiver follows servers: one for each component ID, however many signals have a
// pipeline.
type rbkitReceiver struct {
	env      *environment
	settings receiver.Settings

	started   bool
	servers   []*server
	following sync.WaitGroup
	// unsteer ends that servers are shown.
	unsteer []func()
	// stop ends the following of servers, cancel the time of the shutdown.
	stop, cancel context.CancelFunc
}

// environment is what all servers share.
type environment struct {
	config *Config
	// eventsOff are the log records that are switched off, by their event names.
	eventsOff map[string]bool
	// id is the receiver's.
	id        string
	build     component.BuildInfo
	logger    *zap.Logger
	telemetry *telemetry
	observer  *receiverhelper.ObsReport
	// spans, logs and profiles are nil where no pipeline takes them.
	spans    *handover.Spans[cycleParcel]
	logs     *handover.Logs[logParcel]
	profiles *handover.Profiles[profileParcel]
	metrics  *metricsLoop
	// measured says that a pipeline takes metrics: nobody else wants to know of objects that
	// are created and destroyed.
	measured bool
	// health is the component's, of all servers.
	health *serverhealth.Health
	// memory has the accounts of servers; nil: the receiver was not started.
	memory *budget.Group
	// ctx is cancelled when the time of the shutdown is over.
	ctx context.Context
	hooks
}

// hooks are what tests set.
type hooks struct {
	// host is the name of this machine; empty: it has none.
	host string
	now  func() time.Time
	dial func(ctx context.Context, address string) (net.Conn, error)
}

func newReceiver(settings receiver.Settings, config *Config) (*rbkitReceiver, error) {
	health := serverhealth.New()
	telemetry, err := newTelemetry(ownmetrics.Of(component.KindReceiver, settings.ID, settings.TelemetrySettings), health)
	if err != nil {
		return nil, err
	}
	observer, err := handover.NewObserver(settings, "tcp")
	if err != nil {
		return nil, err
	}
	// A machine without a name goes without.
	host, _ := os.Hostname()
	return &rbkitReceiver{
		settings: settings,
		env: &environment{
			config:    config,
			eventsOff: eventswitch.Off(config.Events),
			id:        settings.ID.String(),
			build:     settings.BuildInfo,
			logger:    settings.Logger,
			telemetry: telemetry,
			observer:  observer,
			health:    health,
			hooks:     hooks{host: host, now: time.Now, dial: dialTCP},
		},
	}, nil
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", address)
}

// Start begins to follow the servers. That one can't be reached is no error: it is tried
// again.
func (r *rbkitReceiver) Start(ctx context.Context, host component.Host, next sharedreceiver.Signals) error {
	env := r.env
	// The context of Start is over before the receiver is.
	env.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	following, stop := context.WithCancel(env.ctx)
	r.stop = stop
	env.memory = budget.Of(host).Group(env.id)
	r.open(next)
	r.started = true
	env.health.Start(host)
	r.steer(following, agentcontrol.Of(host))
	for _, s := range r.servers {
		env.logger.Info("Following an Rbkit server", zap.String("publish", s.config.Publish), zap.String("request", s.config.Request))
		r.following.Go(func() { s.follow(following) })
	}
	return nil
}

// open makes what hands on each signal that has a pipeline, and the servers.
func (r *rbkitReceiver) open(next sharedreceiver.Signals) {
	env := r.env
	if next.Traces != nil {
		env.spans = newSpans(env, next.Traces)
	}
	if next.Logs != nil {
		env.logs = newLogSink(env, next.Logs)
	}
	if next.Profiles != nil {
		env.profiles = newProfileSink(env, next.Profiles)
	}
	env.measured = next.Metrics != nil
	for i := range env.config.Servers {
		r.servers = append(r.servers, newServer(env, &env.config.Servers[i]))
	}
	env.metrics = newMetricsLoop(env, r.settings, next.Metrics, r.living)
}

// living are the states of the processes that are connected, or were since they were asked
// for last.
func (r *rbkitReceiver) living() (states []processState) {
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

// Shutdown switches off what the receiver switched on, and hands on what is in memory, for
// at most shutdown_timeout; then what is left is dropped and counted.
func (r *rbkitReceiver) Shutdown(ctx context.Context) error {
	defer r.env.telemetry.shutdown()
	if !r.started {
		return nil
	}
	r.env.health.Stop()
	r.stop()
	for _, end := range r.unsteer {
		end()
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.following.Wait()
		r.env.close()
	}()
	if !handover.Finish(ctx, over, r.env.config.ShutdownTimeout, overtime, r.cancel) {
		return fmt.Errorf("the pipeline has not returned from a hand-over %v after shutdown_timeout", overtime)
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
	if e.profiles != nil {
		closing.Go(e.profiles.Close)
	}
	closing.Wait()
}
