// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// agent is how an agent plays a capture.
type agent struct {
	endpoint, capture string
	// connections and buffer of the agent; 0: as the collector configures, and 8 KiB.
	connections, buffer int
	// settle is Options.Settle of the agent; 0: 250 ms.
	settle time.Duration
	replay replay.Options
	dial   func(context.Context) (net.Conn, error)
}

// play plays a capture to its end, or to the end of ctx.
func (a agent) play(ctx context.Context, t testing.TB) bytefrogagent.Result {
	t.Helper()
	return a.agent(t).Run(ctx)
}

func (a agent) agent(t testing.TB) *bytefrogagent.Agent {
	t.Helper()
	options := bytefrogagent.Options{
		Endpoint: a.endpoint, Dial: a.dial, DataConnections: a.connections, BufferSize: a.buffer,
		ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience, Settle: a.settle,
	}
	return bytefrogagent.New(options, replay.New(recording(t, a.capture), a.replay))
}

// complete plays a capture, all of which has to be sent.
func (a agent) complete(t testing.TB) bytefrogagent.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	result := a.play(ctx, t)
	require.Equal(t, bytefrogagent.Completed, result.Outcome, "the agent of %s: %s (%v)", a.capture, result.Reason, result.Err)
	return result
}

// mavenBegin is the name of the first events of the capture "maven". Tests use them that need a long run, and not all of it.
const (
	mavenBegin       = "maven's begin"
	mavenBeginEvents = 300_000
)

// narrow opens connections that hold little data. The agent waits soon if the collector does not read.
func narrow(endpoint string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", endpoint)
		if err != nil {
			return nil, err
		}
		const bytes = 16 << 10
		return conn, conn.(*net.TCPConn).SetWriteBuffer(bytes)
	}
}

func capturePath(name string) string { return "../testdata/bytefrog/" + name + ".zip" }

var recordings, runs sync.Map

// recording is a capture for agents.
func recording(t testing.TB, name string) *replay.Recording {
	t.Helper()
	if r, ok := recordings.Load(name); ok {
		return r.(*replay.Recording)
	}
	var r *replay.Recording
	if name == mavenBegin {
		r = recording(t, "maven").Before(mavenBeginEvents)
	} else {
		c, err := capture.Open(capturePath(name))
		require.NoError(t, err)
		r, err = replay.Load(c)
		require.NoError(t, err)
	}
	recordings.Store(name, r)
	return r
}

// openCapture is a capture for the reference.
func openCapture(t testing.TB, name string) *reference.Run {
	t.Helper()
	if r, ok := runs.Load(name); ok {
		return r.(*reference.Run)
	}
	var r *reference.Run
	if name == mavenBegin {
		r = openCapture(t, "maven").Before(mavenBeginEvents)
	} else {
		var err error
		r, err = reference.Open(capturePath(name))
		require.NoError(t, err)
	}
	runs.Store(name, r)
	return r
}

// defaultRules are the rules of a configuration without settings.
var defaultRules = reference.Rules{End: "ended", MaxSpansPerTrace: 20_000}

// collector configures one collector that does everything: spans go into the
// file spans.bin.
func collector(endpoint, receiver, pairing string) string {
	return pipeline(endpoint, receiver, pairing, "file: "+kit.FileExporter("spans.bin"))
}

// sevenConnections lets agents open more connections than the default.
const sevenConnections = "agent: {data_connections: 7}"

// pipeline configures a receiver and a processor with further settings, and one exporter.
//
// While the pipeline refuses, the agent waits, so results do not depend on time.
func pipeline(endpoint, receiver, pairing, exporter string) string {
	return plainPipeline(endpoint, receiver, "span_attributes: {sequence: true, function_text: true}, "+pairing, exporter)
}

// plainPipeline is pipeline where spans have only the attributes that they have by default.
func plainPipeline(endpoint, receiver, pairing, exporter string) string {
	return fmt.Sprintf(`
receivers: {bytefrog: {endpoint: %q, max_block: 0s, %s}}
processors: {stack_pairing: {%s}}
exporters: {%s}
service: {pipelines: {traces: {receivers: [bytefrog], processors: [stack_pairing], exporters: [%s]}}}
`, endpoint, receiver, pairing, exporter, exporterName(exporter))
}

func exporterName(exporter string) string {
	for i, r := range exporter {
		if r == ':' {
			return exporter[:i]
		}
	}
	return exporter
}

// Metrics of the components, as the collector shows them.
const (
	runsEnded       = "otelcol_receiver_bytefrog_runs_ended"
	breaksHeard     = "otelcol_receiver_bytefrog_breaks"
	suspends        = "otelcol_receiver_bytefrog_suspends"
	lingering       = "otelcol_receiver_bytefrog_lingering"
	eventsReceived  = "otelcol_receiver_bytefrog_events"
	spansFinished   = "otelcol_processor_stack_pairing_spans"
	spansDropped    = "otelcol_processor_stack_pairing_dropped_spans"
	orphans         = "otelcol_processor_stack_pairing_orphans"
	truncatedFrames = "otelcol_processor_stack_pairing_truncated_frames"
	stackBreaks     = "otelcol_processor_stack_pairing_breaks"
	eventsTaken     = "otelcol_processor_stack_pairing_events"
	openFrames      = "otelcol_processor_stack_pairing_open_frames"
	openStreams     = "otelcol_processor_stack_pairing_streams"
)

// stopAfter waits until that many runs have ended, and stops the collector.
func stopAfter(t testing.TB, c *kit.Collector, runs int) {
	t.Helper()
	c.AwaitMetric(t, float64(runs), runsEnded)
	c.Stop(t)
}

// unhurried lets agents wait, after a data break, until the collector has received it, before they
// send more data. Real agents always do so: they continue on a command, and headquarters sends that
// only after the break.
type unhurried struct {
	t         testing.TB
	collector *kit.Collector
	endpoint  string

	// sent is the number of breaks that the agents have sent.
	sent atomic.Int64
}

// dial is for one agent.
func (u *unhurried) dial() func(context.Context) (net.Conn, error) {
	var dialled atomic.Int32
	var awaited atomic.Int64
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.endpoint)
		if err != nil {
			return nil, err
		}
		// The first is the control connection.
		return &unhurriedConnection{Conn: conn, unhurried: u, isControl: dialled.Add(1) == 1, awaited: &awaited}, nil
	}
}

type unhurriedConnection struct {
	net.Conn
	*unhurried
	isControl bool
	// awaited is how many breaks of all agents the agent has to wait for.
	awaited *atomic.Int64
}

func (c *unhurriedConnection) Write(b []byte) (int, error) {
	const dataBreak = 9
	if c.isControl {
		if b[0] == dataBreak {
			c.awaited.Store(c.sent.Add(1))
		}
		return c.Conn.Write(b)
	}
	if n := c.awaited.Load(); n > 0 {
		c.collector.AwaitMetric(c.t, float64(n), breaksHeard)
		c.awaited.CompareAndSwap(n, 0)
	}
	return c.Conn.Write(b)
}
