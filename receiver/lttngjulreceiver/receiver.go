// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
)

// julReceiver is what agents take for their session daemon: one for each component ID,
// however many signals have a pipeline.
type julReceiver struct {
	env      *environment
	settings receiver.Settings

	listener  net.Listener
	slots     *slots.Slots
	portFiles *portFiles
	// serving are the goroutines of the listener and of all connections.
	serving sync.WaitGroup
	// cancel cancels env.ctx.
	cancel context.CancelFunc
}

// environment is what all agents share.
type environment struct {
	config *Config
	// eventsOff are the log records that are switched off, by their event names.
	eventsOff map[string]bool
	plan      plan
	build     component.BuildInfo
	logger    *zap.Logger
	telemetry *telemetry
	observer  *receiverhelper.ObsReport
	registry  *registry
	leftovers *leftovers
	// inventories are the names of loggers that are held.
	inventories *inventories
	// health is the component's, of its port files.
	health  *serverhealth.Health
	lookups *lookups
	counts  *counts
	// logs is nil where no pipeline takes them.
	logs    *logSink
	metrics *metricsLoop
	// agents is where agents are shown and steered, if it is anywhere; id is the receiver's.
	agents agentcontrol.Directories
	id     string
	lines  lines
	// stopping is closed when the shutdown begins; ctx is cancelled when its time is
	// over.
	stopping chan struct{}
	ctx      context.Context
	hooks
}

// lines are those of the log that can come very often.
type lines struct {
	registered, gone, lost, refused, refusedCommand, unlisted, unaccepted, shareDrops logline.Seldom
}

// hooks are what tests set.
type hooks struct {
	now func() time.Time
	// checkPortFiles is how often port files are looked after: as often as agents look
	// for a daemon.
	checkPortFiles time.Duration
	// firstPause is the time between the first two lists of an agent.
	firstPause time.Duration
	// silence is how long an agent of the RFC has said nothing when it is first asked.
	silence time.Duration
}

func newReceiver(settings receiver.Settings, config *Config) (*julReceiver, error) {
	plan, err := newPlan(config)
	if err != nil {
		return nil, err
	}
	telemetry, err := newTelemetry(ownmetrics.Of(component.KindReceiver, settings.ID, settings.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	observer, err := handover.NewObserver(settings, "tcp")
	if err != nil {
		return nil, err
	}
	r := &julReceiver{
		settings: settings,
		env: &environment{
			config:      config,
			eventsOff:   eventswitch.Off(config.Events),
			plan:        plan,
			id:          settings.ID.String(),
			build:       settings.BuildInfo,
			logger:      settings.Logger,
			telemetry:   telemetry,
			observer:    observer,
			registry:    newRegistry(),
			leftovers:   &leftovers{},
			inventories: newInventories(config.Limits.MaxInventoryBytes),
			lookups:     newLookups(config.ProcessCommandArgs),
			counts:      &counts{},
			health:      serverhealth.New(),
			stopping:    make(chan struct{}),
			hooks:       hooks{now: time.Now, checkPortFiles: 3 * time.Second, firstPause: firstPause, silence: silence},
		},
	}
	r.slots = newSlots(r.env)
	return r, nil
}

// Start listens, and tells agents the port.
func (r *julReceiver) Start(ctx context.Context, host component.Host, next sharedreceiver.Signals) error {
	env := r.env
	listener, err := env.config.TCPAddrConfig.Listen(ctx)
	if err != nil {
		return listenError(env.config.Endpoint, err)
	}
	if r.portFiles, err = claimPortFiles(env, listener.Addr()); err != nil {
		_ = listener.Close()
		return err
	}
	r.listener = listener
	env.inventories.accounts = budget.Of(host).Group(env.id)
	// The context of Start is over before the receiver is.
	env.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	env.agents = agentcontrol.Of(host)
	if next.Logs != nil {
		env.logs = newLogSink(env, next.Logs)
	}
	env.metrics = newMetricsLoop(env, r.settings, next.Metrics, listener.Addr())
	r.say(listener.Addr())
	env.health.Start(host)
	r.portFiles.watch()
	slots.WarnIfShort(env.logger, settingMaxAgents, env.config.Limits.MaxAgents)
	r.serving.Go(func() { r.accept(r.slots.Listen(listener)) })
	return nil
}

func listenError(endpoint string, err error) error {
	err = fmt.Errorf("listening for LTTng agents on endpoint %s: %w", endpoint, err)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: where lttng-sessiond runs, it has the first that is free of ports 5345 to 5354: set endpoint to another one", err)
	}
	return err
}

// say says where agents are expected, and what keeps them away or lets others in.
func (r *julReceiver) say(address net.Addr) {
	logger := r.env.logger
	logger.Info("Listening for LTTng agents", zap.Stringer("address", address), zap.Strings("port_files", r.portFiles.claimed()))
	if len(r.env.config.PortFiles) == 0 {
		logger.Warn("port_files is empty: agents find this receiver only where another file tells them its port, such as /var/run/lttng/agent.port")
	}
	openlistener.Listener{
		Component: r.env.id, Address: address, Remedy: "set endpoint to localhost: the protocol has neither TLS nor names of agents",
	}.Warn(logger)
}

func (r *julReceiver) isStopping() bool {
	select {
	case <-r.env.stopping:
		return true
	default:
		return false
	}
}
