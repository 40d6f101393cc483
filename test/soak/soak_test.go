// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/test/testbed"
)

// places are where receivers listen, and servers that they read from.
type places struct{ living, killed, relay, publish, request, greys string }

// configuration has all receivers, and one exporter that keeps what the backend doesn't
// take on disk.
func configuration(p places, queue, backend string) string {
	return fmt.Sprintf(`
extensions:
  file_storage: {directory: %q}
receivers:
  bytefrog/living: {endpoint: %q, service_name: living}
  bytefrog/killed: {endpoint: %q, service_name: killed}
  lttng_live: {endpoint: %q, poll: {list_interval: 100ms}, reconnect: {initial_interval: 10ms, max_interval: 1s}, service_name: lttng}
  rbkit: {servers: [{publish: %q, request: %q, service_name: rbkit}]}
  lttng_jul: {endpoint: "127.0.0.1:0", port_files: ["${env:DIR}/agent.port"]}
  greys: {servers: [{endpoint: %q, service_name: greys}], monitors: [{class: "*Service*", method: "*", cycle: 1s}], traces: [{class: "*Service1*", method: "*", limit: 1000}]}
processors: {stack_pairing: {reorder: {max_wait: 10s}}}
exporters:
  otlp_http:
    endpoint: %q
    compression: none
    sending_queue: {storage: file_storage, sizer: bytes, queue_size: 1073741824, block_on_overflow: true, num_consumers: 4}
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
  nop:
service:
  extensions: [health_check, pprof, file_storage]
  pipelines:
    traces: {receivers: [bytefrog/living, bytefrog/killed, lttng_live, greys, rbkit], processors: [stack_pairing], exporters: [otlp_http]}
    logs: {receivers: [bytefrog/living, bytefrog/killed, lttng_live, lttng_jul, greys, rbkit], exporters: [nop]}
    metrics: {receivers: [bytefrog/living, bytefrog/killed, greys, rbkit], exporters: [nop]}
`, queue, p.living, p.killed, p.relay, p.publish, p.request, p.greys, backend)
}

func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("CALLBRAID_SOAK"))
	if err != nil {
		t.Skip("it takes as long as one likes: run make soak")
	}
	p := places{testbed.Address(t), testbed.Address(t), testbed.Address(t), testbed.Address(t), testbed.Address(t), testbed.Address(t)}
	b := newBackend()
	endpoint, _ := testbed.ServeOTLP(t, b.take)
	d := newDisk(t)
	c := testbed.Start(t, configuration(p, d.folder, endpoint))
	run := &soak{t: t, collector: c, backend: b, disk: d}

	ctx, end := context.WithTimeout(t.Context(), length)
	defer end()
	var all sync.WaitGroup
	for seed := range uint64(3) {
		all.Go(func() { run.living.play(ctx, t, p.living, seed, 0) })
	}
	for seed := range uint64(1) {
		all.Go(func() { run.killed.play(ctx, t, p.killed, 100+seed, 5*time.Second) })
	}
	for _, played := range [][]string{
		{"rbkit", "load", "--publish", p.publish, "--request", p.request, "--rate", "20", "--duration", "20s", "--garbage", "50"},
		{"greys", "--listen", p.greys, "--duration", "20s", "--fault", "close,cut,silence,gap,half", "--fault-every", "20"},
		{"lttng-agent", "--port-file", filepath.Join(c.Dir, "agent.port"), "--agents", "5", "--duration", "20s"},
	} {
		all.Go(func() { playAgain(ctx, t, func(int64) []string { return played }) })
	}
	all.Go(func() {
		session := filepath.Join("..", "..", "testdata", "lttng", "live", "cygok.zip")
		run.replays = playAgain(ctx, t, func(turn int64) []string {
			return []string{"lttng", "--listen", p.relay, "--name", fmt.Sprint("session-", turn), session}
		})
	})
	all.Go(func() { run.noises = noise(ctx, []string{p.living, p.killed}, 7) })
	all.Go(func() { run.faults(ctx) })
	all.Go(func() { run.sample(ctx, length) })
	all.Wait()
	run.settle()
	run.report(length)
}

// soak is one run, and what it counts.
type soak struct {
	t              testing.TB
	collector      *testbed.Collector
	backend        *backend
	disk           *disk
	living, killed sent
	replays        int64 // of the LTTng session, read to their end
	noises         int64
	refusals       int64 // times in which the backend refused everything
	full           int64 // times in which the queue's disk was full
	samples        []sample
}

// sample is what the collector takes at one time.
type sample struct {
	at         time.Duration
	memory     uint64 // peak of the last while, in bytes
	goroutines int
	files      int
}

// faults has the backend refuse, and the disk be full, by turns.
func (s *soak) faults(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			s.backend.refuses.Store(false)
			assert.NoError(s.t, s.disk.free())
			return
		case <-tick.C:
		}
		switch turn % 4 {
		case 0:
			s.backend.refuses.Store(true)
			s.refusals++
		case 1: // also full, while nothing is taken from it
			full, err := s.disk.fill()
			assert.NoError(s.t, err)
			if full {
				s.full++
			}
		case 2:
			assert.NoError(s.t, s.disk.free())
		default:
			s.backend.refuses.Store(false)
		}
	}
}

// sample looks at the collector twenty times in the run.
func (s *soak) sample(ctx context.Context, length time.Duration) {
	began := time.Now()
	tick := time.NewTicker(length / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.samples = append(s.samples, sample{
				time.Since(began), s.collector.PeakMemory(s.t), s.collector.Goroutines(s.t), s.collector.OpenFiles(s.t),
			})
			s.collector.ResetPeakMemory(s.t)
		}
	}
}

// settle waits until everything that was sent is where it belongs.
func (s *soak) settle() {
	s.t.Helper()
	// On a busy machine much waits when the load ends.
	const patience = 10 * time.Minute
	testbed.EventuallyWithin(s.t, patience, "no call stream is open and nothing is queued", func() (bool, string) {
		streams := s.collector.Metric(s.t, "otelcol_processor_stack_pairing_streams")
		queued := s.collector.Metric(s.t, "otelcol_exporter_queue_size")
		held := s.collector.Metric(s.t, "otelcol_processor_stack_pairing_held_spans")
		return streams == 0 && queued == 0 && held == 0, fmt.Sprintf("%v streams, %v bytes queued, %v spans held", streams, queued, held)
	})
	testbed.EventuallyWithin(s.t, patience, "what the processor has finished is delivered", func() (bool, string) {
		finished, exported := s.collector.Metric(s.t, "otelcol_processor_stack_pairing_spans"), s.total()
		return exported >= int64(finished), fmt.Sprintf("%v of %v", exported, finished)
	})
}

// total is the number of spans that were paired and came.
func (s *soak) total() (n int64) {
	for _, service := range []string{"living", "killed", "lttng"} {
		d := s.backend.of(service)
		n += d.spans + d.duplicates
	}
	return n
}

// report prints what became of everything, and fails where something is not explained.
func (s *soak) report(length time.Duration) {
	t := s.t
	living, killed, lttng := s.backend.of("living"), s.backend.of("killed"), s.backend.of("lttng")
	received := int64(s.collector.Metric(t, "otelcol_receiver_bytefrog_events"))
	late := int64(s.collector.Metric(t, "otelcol_processor_stack_pairing_late_events"))
	dropped := int64(s.collector.Metric(t, "otelcol_processor_stack_pairing_dropped_spans") + s.collector.Metric(t, "otelcol_receiver_bytefrog_events_dropped"))
	const callsOfReplay = 109
	// Each session has the same program, whose spans have the same numbers.
	ofLTTng := lttng.spans + lttng.duplicates
	unexplained := s.living.calls.Load() - living.spans + max(0, s.replays*callsOfReplay-ofLTTng)
	lost := s.killed.events.Load() + s.living.events.Load() - received

	var b strings.Builder
	row := func(what string, n any) { fmt.Fprintf(&b, "| %s | %v |\n", what, n) }
	fmt.Fprintf(&b, "\n| in %v | |\n|---|---|\n", length)
	row("programs traced by Bytefrog that ended by themselves", s.living.lives.Load())
	row("events they sent", s.living.events.Load())
	row("their calls, as their own records say", s.living.calls.Load())
	row("spans of them that were delivered", living.spans)
	row("of these announced as truncated, since tracing was suspended or a buffer lost", sum(living.truncated))
	row("delivered more than once", living.duplicates+killed.duplicates)
	row("dropped by the collector, counted", dropped)
	row("numbers given up because nothing came in time", s.collector.Metric(t, "otelcol_processor_stack_pairing_missing_numbers"))
	row("events that came after that", late)
	row("programs that were killed", s.killed.lives.Load())
	row("events they wrote", s.killed.events.Load())
	row("of these lost with the process, in its sockets", lost)
	row("spans of the rest", killed.spans)
	row("LTTng sessions that were read to their end", s.replays)
	row("their calls", s.replays*callsOfReplay)
	row("spans delivered of all sessions", ofLTTng)
	row("**unexplained**", unexplained)
	row("programs that hang", s.living.hung.Load())
	row("times in which the backend refused, for 15 s", s.refusals)
	row("times in which the queue's disk was full, for 5 s", s.full)
	row("connections with garbage, half of them slow", s.noises)
	fmt.Fprintf(&b, "\n| after | peak memory, MiB | goroutines | open files |\n|---|---|---|---|\n")
	for _, at := range s.samples {
		fmt.Fprintf(&b, "| %v | %d | %d | %d |\n", at.at.Round(time.Second), at.memory>>20, at.goroutines, at.files)
	}
	fmt.Println(b.String())

	assert.Zero(t, unexplained)
	assert.Zero(t, s.living.hung.Load())
	assert.Zero(t, dropped)
	assert.Zero(t, late)
	assert.Equal(t, s.living.truncated.Load(), sum(living.truncated))
	assert.Positive(t, living.spans)
	// What a socket's buffers hold, at both ends, and a program's own.
	const inFlight = 8 << 20 / 20
	assert.Less(t, lost, s.killed.lives.Load()*inFlight)
}

func sum(by map[string]int64) (n int64) {
	for _, m := range by {
		n += m
	}
	return n
}
