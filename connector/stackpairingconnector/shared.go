// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"
	"runtime"
	"sync"
	"weak"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/pairingmark"
	"github.com/callbraid/callbraid/internal/componentkit/ownlog"
)

// shared has the pairers of a factory that are not shut down: one for each configuration. If the
// Collector cannot build its pipelines, it never shuts their connectors down. So the pointers are weak.
type shared struct {
	mu   sync.Mutex
	made map[weak.Pointer[Config]]weak.Pointer[pairer]
}

// input returns another input of the pairer of a configuration. connect sets its output. isTraces:
// that is traces.
func (s *shared) input(set connector.Settings, cfg *Config, isTraces bool, connect func(*pairer)) (*input, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := weak.Make(cfg)
	p := s.made[key].Value()
	if p == nil {
		set.Logger = ownlog.OfAllSignals(set.Logger)
		var err error
		if p, err = newPairer(set, cfg, func() { s.forget(key) }); err != nil {
			return nil, err
		}
		s.made[key] = weak.Make(p)
		runtime.AddCleanup(p, s.forgetUnused, key)
	}
	connect(p)
	p.inputs++
	i := &input{pairer: p}
	if p.passing == nil || isTraces {
		p.passing = i
	}
	return i, nil
}

func (s *shared) forget(key weak.Pointer[Config]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.made, key)
}

// forgetUnused forgets the pairer of a configuration, unless there is another one by now.
func (s *shared) forgetUnused(key weak.Pointer[Config]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[key].Value() == nil {
		delete(s.made, key)
	}
}

// input is a connector as the Collector knows it: from traces to one signal. Each input receives
// every hand-over, and only pairer.passing passes it on.
type input struct{ pairer *pairer }

var _ connector.Traces = (*input)(nil)

// Capabilities: the connector never changes a hand-over.
func (*input) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start starts the pairer with the first input.
func (i *input) Start(ctx context.Context, host component.Host) error {
	return i.pairer.start(ctx, host)
}

// Shutdown shuts the pairer down with the first input that is shut down. The Collector has shut
// down all components before the connector by then, and none behind it.
func (i *input) Shutdown(ctx context.Context) error { return i.pairer.shutdown(ctx) }

// ConsumeTraces accepts a hand-over, or refuses all of it.
func (i *input) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if i != i.pairer.passing {
		return nil
	}
	if pairingmark.IsPaired(ctx) {
		i.pairer.warnPaired()
	}
	return i.pairer.engine.ConsumeTraces(ctx, td)
}
