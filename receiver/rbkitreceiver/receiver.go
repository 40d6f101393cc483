// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"net"
	"strconv"

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/session"
)

// rbkitReceiver receives from the servers of one configuration, for all signals.
type rbkitReceiver struct {
	kit      *receiverkit.Kit
	config   *Config
	counters *counters.Counters
	dial     dialFunc

	// The rest is there from Start on.
	out     *outputs
	servers []*session.Server
	// unregister removes servers from the extensions that show them.
	unregister []func()
}

func newReceiver(settings receiver.Settings, config *Config) (*receiverkit.Receiver, error) {
	kit, err := receiverkit.New(settings, &config.Config, receiverkit.Names{Format: "rbkit", Scope: metadata.ScopeName})
	if err != nil {
		return nil, err
	}
	own, err := counters.New(kit)
	if err != nil {
		return nil, err
	}
	return &receiverkit.Receiver{Kit: kit, Protocol: &rbkitReceiver{kit: kit, config: config, counters: own, dial: dialTCP}}, nil
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", address)
}

// Start begins to follow the servers. A server that can't be reached is tried again.
func (r *rbkitReceiver) Start(_ context.Context, run *receiverkit.Run) error {
	r.open(run)
	r.register()
	for _, s := range r.servers {
		run.Logger.Info("Following an Rbkit server", zap.String("publish", s.Publish), zap.String("request", s.Request))
		run.Go(func() { s.Follow(run.Serving) })
	}
	return nil
}

// open opens the outputs of each signal that has a pipeline, and makes the servers. The goroutine of the metrics reads the
// servers, so it begins after them.
func (r *rbkitReceiver) open(run *receiverkit.Run) {
	r.out = newOutputs(run, r.config, r.counters)
	for i := range r.config.Servers {
		r.servers = append(r.servers, session.New(r.out.sessionSettings(&r.config.Servers[i], r.dial)))
	}
	r.out.metrics = newMetricsLoop(r.out, r.counters, r.living)
}

// living returns the states of the processes that are connected, or were at some time since
// the last collection.
func (r *rbkitReceiver) living() (states []process.State) {
	for _, s := range r.servers {
		if state, ok := s.Lives.CollectState(); ok {
			states = append(states, state)
		}
	}
	return states
}

// Stop removes the servers from the extensions. Each server switches off the profiles that the
// receiver switched on, in its own goroutine.
func (r *rbkitReceiver) Stop() {
	for _, unregister := range r.unregister {
		unregister()
	}
}

// Close ends the receiver's own telemetry.
func (r *rbkitReceiver) Close(context.Context) error {
	r.counters.Shutdown()
	return nil
}

// register shows the servers in the extensions, until the receiver is shut down.
func (r *rbkitReceiver) register() {
	for i, s := range r.servers {
		id := agentcontrol.NewID(r.kit.ID, strconv.Itoa(i), s.Publish)
		r.unregister = append(r.unregister, r.out.Agents.Register(&controlledServer{server: s, out: r.out, config: &r.config.Servers[i], id: id}))
	}
}
