// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/guard"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// mortal is a collector that the test kills and starts again and again. Its programs run behind a
// guard, because they would hang otherwise.
type mortal struct {
	t             testing.TB
	configuration string
	collector     *kit.Collector
	guard         *guard.Guard
	programs      programs
	sent          sent
	kills         int64
	// begun is the number of events that the guard had sent when the collector was started last.
	begun uint64
	toll  toll
}

// toll is the events that collectors had received when they were killed, except those in spans in
// the queue on disk, which survives.
type toll struct {
	onTheWay  int64 // in the guard and in sockets
	received  int64 // by the receiver, and not yet by the processor
	waiting   int64 // for events with lower numbers
	open      int64 // calls that had not ended
	held      int64 // of finished calls that the exporter had not accepted
	unwatched int64 // between the last query and the kill
	// announced is the number that they had counted as late, orphans or dropped.
	announced int64
}

func newMortal(t testing.TB, backend string, load float64) *mortal {
	t.Helper()
	endpoint := testkit.Address(t)
	m := &mortal{t: t, configuration: fmt.Sprintf(`
extensions:
  file_storage: {directory: %q}
receivers:
  bytefrog: {endpoint: %q, service_name: mortal, max_block: 0s}
processors: {stack_pairing: {span_attributes: {sequence: true}, reorder: {max_wait: 30s}}}
exporters:
  otlp_http:
    endpoint: %q
    compression: none
    sending_queue: {storage: file_storage, sizer: bytes, queue_size: 16777216, block_on_overflow: true}
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
service:
  extensions: [health_check, pprof, file_storage]
  pipelines:
    traces: {receivers: [bytefrog], processors: [stack_pairing], exporters: [otlp_http]}
`, t.TempDir(), endpoint, backend)}
	m.collector = kit.Start(t, m.configuration)
	o := guard.DefaultOptions()
	o.Collectors = []string{endpoint}
	var err error
	m.guard, err = guard.New(o)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- m.guard.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		assert.NoError(t, m.guard.Shutdown(ctx))
		assert.NoError(t, <-served)
	})
	m.programs = programs{endpoint: listener.Addr().String(), rate: baseRate * load}
	return m
}

// live runs programs until ctx ends, and kills the collector every 10 to 20 s.
func (m *mortal) live(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.sent.play(ctx, m.t, m.programs, 200)
	}()
	random := rand.New(rand.NewPCG(3, 3))
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(10*time.Second + time.Duration(random.Int64N(int64(10*time.Second)))):
			m.kill()
		}
	}
	<-ended
}

// kill queries the collector's counters, kills it, and starts it again.
func (m *mortal) kill() {
	passed := m.guard.Counts().Passed.Load()
	look := m.collector.Look(m.t)
	m.collector.Kill()
	after := m.guard.Counts().Passed.Load()
	m.kills++
	received, taken := look.Sum(bytefrogEvents), look.Sum(pairingEvents)
	m.toll.onTheWay += max(0, int64(passed-m.begun)-int64(received))
	m.toll.received += max(0, int64(received-taken))
	m.toll.waiting += int64(look.Sum("otelcol_processor_stack_pairing_waiting_events"))
	m.toll.open += int64(look.Sum("otelcol_processor_stack_pairing_open_frames"))
	m.toll.held += 2 * int64(look.Sum("otelcol_processor_stack_pairing_held_spans"))
	// The collector continues during the query. The events of a second may reach a part of it that
	// was already read.
	m.toll.unwatched += int64(after-passed) + int64(m.programs.rate)
	m.toll.announced += announced(look).sum()
	m.begun = after
	m.collector = kit.Start(m.t, m.configuration)
}

// settle waits until the last collector has delivered all its data, and stops it.
func (m *mortal) settle(patience time.Duration) {
	m.t.Helper()
	testkit.EventuallyWithin(m.t, patience, "the collector that is killed has nothing more", func() (bool, string) {
		look := m.collector.Look(m.t)
		streams, queued := look.Sum("otelcol_processor_stack_pairing_streams"), look.Sum("otelcol_exporter_queue_size")
		return streams+queued == 0, fmt.Sprintf("%v streams, %v bytes queued", streams, queued)
	})
	m.toll.announced += announced(m.collector.Look(m.t)).sum()
	m.collector.Stop(m.t)
}
