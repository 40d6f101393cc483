// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/attack"
	"github.com/callbraid/callbraid/test/kit"
)

// soak is one run, with its counters.
type soak struct {
	t              testing.TB
	all            sync.WaitGroup // all load and all faults
	collector      *kit.Collector
	backend        *backend
	disk           *disk
	living, killed sent
	// summed and summedKilled are the programs whose calls the connector counts.
	summed, summedKilled sent
	played               played
	mortal               *mortal
	readers              readers
	noises               int64
	attackers            []attack.Attacker
	faults               faults
	samples              []sample
}

// begin starts all load and all faults. They end with ctx.
func (s *soak) begin(ctx context.Context, p places, load float64, length time.Duration) {
	living := programs{endpoint: p.living, rate: baseRate * load, steps: 3}
	for seed := range uint64(3) {
		s.all.Go(func() { s.living.play(ctx, s.t, living, seed) })
	}
	killed := programs{endpoint: p.killed, rate: baseRate * load, steps: 3, killedAfter: 5 * time.Second}
	s.all.Go(func() { s.killed.play(ctx, s.t, killed, 100) })
	summed, summedKilled := living, killed
	summed.endpoint, summedKilled.endpoint = p.summed, p.summedKilled
	// Metrics have room for all functions. Without room a program's last values are not sent again after a refusal.
	summed.functions, summedKilled.functions = 50, 50
	s.all.Go(func() { s.summed.play(ctx, s.t, summed, 300) })
	s.all.Go(func() { s.summedKilled.play(ctx, s.t, summedKilled, 400) })
	s.all.Go(func() { s.mortal.live(ctx) })
	s.all.Go(func() { s.played.rbkit(ctx, s.t, p.publish, p.request) })
	s.all.Go(func() { s.played.greys(ctx, s.t, p.greys) })
	s.all.Go(func() { s.played.arthas(ctx, s.t, p.arthas) })
	s.all.Go(func() { s.played.agents(ctx, s.t, filepath.Join(s.collector.Dir, "agent.port")) })
	s.all.Go(func() {
		s.played.relay(ctx, s.t, p.relay, filepath.Join("..", "..", "testdata", "lttng", "live", "cygok.zip"))
	})
	s.all.Go(func() {
		s.noises = noise(ctx, []string{p.living, p.killed, p.summed, p.summedKilled, p.agents, p.flames, p.prometheus}, 7)
	})
	for _, path := range []string{"/services/living/profile.folded", "/services/living/ui/flamegraph"} {
		s.all.Go(func() { s.readers.read(ctx, p.flames, path) })
	}
	s.all.Go(func() { s.readers.read(ctx, p.prometheus, "/metrics") })
	for _, a := range s.attackers {
		s.all.Go(func() { s.attack(ctx, a) })
	}
	s.all.Go(func() { s.fail(ctx) })
	s.all.Go(func() { s.sample(ctx, length) })
}

// settle waits until all sent data is delivered or counted.
func (s *soak) settle() {
	s.t.Helper()
	// On a busy machine much data is still waiting when the load ends.
	const patience = 10 * time.Minute
	testkit.EventuallyWithin(s.t, patience, "no server is connected, no call stream is open and no data is queued", func() (bool, string) {
		look := s.collector.Look(s.t)
		streams, queued := look.Sum("otelcol_processor_stack_pairing_streams")+look.Sum(connector+"streams"), look.Sum("otelcol_exporter_queue_size")
		held, servers := look.Sum("otelcol_processor_stack_pairing_held_spans")+look.Sum(connector+"held_spans"), 0.0
		for _, receiver := range []string{"rbkit", "greys", "arthas"} {
			servers += look.Sum("otelcol_receiver_" + receiver + "_servers")
		}
		return streams+queued+held+servers == 0, fmt.Sprintf("%v streams, %v bytes queued, %v spans held, %v servers", streams, queued, held, servers)
	})
	s.mortal.settle(patience)
	s.awaitDelivery()
}

// awaitDelivery waits until data on its way has arrived, and until metrics were exported once more.
// Data that is still missing then is unexplained.
func (s *soak) awaitDelivery() {
	const patience = 30 * time.Second
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		look := s.collector.Look(s.t)
		if s.total() >= int64(look.Sum(pairingSpans)) && s.backend.sum(rbkitEvents) >= int64(look.Sum("otelcol_receiver_rbkit_events")) &&
			s.backend.sum(methodCalls) >= s.played.greysTold.calls.Load()+s.played.arthasTold.calls.Load() && s.sumsArrived(look) {
			return
		}
	}
}

// sumsArrived reports whether the back end has all calls that the connector paired.
func (s *soak) sumsArrived(look kit.Look) bool {
	calls := int64(look.Sum(connector + "spans"))
	return s.backend.sum(functionCalls) >= calls && s.backend.callsInProfiles() >= calls
}

// total returns the number of spans that were paired and delivered.
func (s *soak) total() (n int64) {
	for _, service := range append([]string{forged, ""}, paired...) {
		d := s.backend.of(service)
		n += d.spans + d.duplicates
	}
	return n
}
