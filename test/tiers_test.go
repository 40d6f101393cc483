// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// Batches that reach a pairing collector over OTLP, as from another tier.

// pairingTier is a collector that pairs batches from OTLP/HTTP.
func pairingTier(address string) string {
	return fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
processors: {stack_pairing: {span_attributes: {sequence: true, function_text: true}, reorder: {max_wait: 60s}, idle_timeout: 10m}}
exporters: {file: %s}
service: {pipelines: {traces: {receivers: [otlp], processors: [stack_pairing], exporters: [file]}}}
`, address, kit.FileExporter("spans.bin"))
}

// batchesOf packs a run as receivers do: events dealt out to connections, each
// with batches of its own.
func batchesOf(t *testing.T, run *reference.Run, stream callevent.StreamID, connections int) []ptrace.Traces {
	t.Helper()
	p := newRunPacker(t, run, stream, connections)
	for i, e := range run.Events {
		p.add(e, p.connections[i/100%connections])
	}
	for _, c := range p.connections {
		p.flush(c, nil)
	}
	end := callevent.End(p.next, callevent.CauseEnded)
	p.flush(p.connections[0], &end)
	return p.batches
}

// runPacker makes batches of one run.
type runPacker struct {
	t           *testing.T
	functions   map[string]*callevent.Function
	run         *reference.Run
	barriers    []callevent.Barrier
	connections []*callevent.Packer
	next        uint64
	received    int64
	batches     []ptrace.Traces
}

func newRunPacker(t *testing.T, run *reference.Run, id callevent.StreamID, connections int) *runPacker {
	t.Helper()
	p := &runPacker{
		t: t, functions: map[string]*callevent.Function{}, run: run,
		next: uint64(run.Events[len(run.Events)-1].Sequence) + 1, received: 1_800_000_000_000_000_000,
	}
	for _, b := range run.Breaks {
		p.barriers = append(p.barriers, callevent.Point(uint64(b), callevent.CauseSuspended))
	}
	stream := callevent.Stream{ID: id, Epoch: p.received, Resolution: 1_000_000, TextKey: "bytefrog.method.signature"}
	for range connections {
		packer, err := callevent.NewPacker(stream, callevent.MinBatchBytes)
		require.NoError(t, err)
		p.connections = append(p.connections, packer)
	}
	return p
}

func (p *runPacker) add(e reference.Event, packer *callevent.Packer) {
	if p.tryAdd(e, packer) {
		return
	}
	p.flush(packer, nil)
	require.True(p.t, p.tryAdd(e, packer))
}

func (p *runPacker) tryAdd(e reference.Event, packer *callevent.Packer) bool {
	kinds := map[byte]callevent.Kind{20: callevent.KindEnter, 21: callevent.KindExit, 22: callevent.KindThrow, 23: callevent.KindUnwind}
	out := callevent.Event{Sequence: uint64(e.Sequence), Time: int64(e.Time), Kind: kinds[e.Type], Line: uint32(e.Line)}
	f := p.functions[e.Method]
	if f == nil {
		f = &callevent.Function{Qualified: reference.Qualified(e.Method), Display: reference.Display(e.Method), Text: e.Method}
		p.functions[e.Method] = f
	}
	var ok [3]bool
	out.Function, ok[0] = packer.Function(f)
	out.Lane, ok[1] = packer.Lane(callevent.Lane{ID: uint64(e.Thread), Name: p.run.ThreadName(e)})
	ok[2] = true
	if e.Exception != "" {
		out.Exception, ok[2] = packer.Exception(e.Exception)
	}
	return ok == [3]bool{true, true, true} && packer.Add(&out)
}

func (p *runPacker) flush(packer *callevent.Packer, end *callevent.Barrier) {
	barriers := p.barriers
	if end != nil {
		barriers = append(slices.Clone(barriers), *end)
	}
	packed, err := packer.Close(barriers, p.next, p.received)
	require.NoError(p.t, err)
	traces := ptrace.NewTraces()
	rs := traces.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.instance.id", packed.Stream.String())
	packed.To(rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty())
	p.batches = append(p.batches, traces)
	packer.Reset()
}

// Batches in any order, also repeated, become the same spans with the same IDs, in every collector.
func TestBatchesInAnyOrderBecomeTheSameSpans(t *testing.T) {
	t.Parallel()
	run := openCapture(t, "suspend")
	want := reference.Spans(run, defaultRules)
	first := map[int64]span{}
	for _, test := range []struct {
		name        string
		connections int
		order       func([]ptrace.Traces) []ptrace.Traces
	}{
		{"in order", 1, func(b []ptrace.Traces) []ptrace.Traces { return b }},
		{"backwards", 3, func(b []ptrace.Traces) []ptrace.Traces { slices.Reverse(b); return b }},
		{"shuffled, each twice", 7, func(b []ptrace.Traces) []ptrace.Traces {
			b = append(b, b...)
			random := rand.New(rand.NewPCG(1, 2))
			random.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
			return b
		}},
	} {
		t.Run(test.name, func(t *testing.T) {

			address := testkit.Address(t)
			c := kit.Start(t, pairingTier(address))
			batches := test.order(batchesOf(t, run, callevent.StreamID{1, 15: 9}, test.connections))
			for _, b := range batches {
				require.NoError(t, kit.SendOTLP(address, b))
			}
			c.Stop(t)
			got := readStreams(t, c, "spans.bin").only(t)
			checkEqual(t, want, got)
			for _, s := range got.spans {
				if same, ok := first[s.sequence]; ok {
					assert.Equal(t, [3]any{same.trace, same.id, same.parent}, [3]any{s.trace, s.id, s.parent}, "IDs of span %d", s.sequence)
				}
				first[s.sequence] = s
			}
		})
	}
}

// One collector receives, and sends batches with two senders; half of them are delayed until all
// others have arrived. A second collector pairs: the same spans.
func TestTwoTiersMakeTheSameSpans(t *testing.T) {
	t.Parallel()
	pairing := testkit.Address(t)
	second := kit.Start(t, pairingTier(pairing))
	forward := &forwarder{to: pairing}
	endpoint, stop := kit.ServeOTLP(t, kit.Accept{Traces: forward.accept})
	agents := testkit.Address(t)
	first := kit.Start(t, fmt.Sprintf(`
receivers: {bytefrog: {endpoint: %q}}
exporters:
  otlp_http:
    endpoint: %q
    compression: none
    sending_queue: {num_consumers: 2, block_on_overflow: true}
service: {pipelines: {traces: {receivers: [bytefrog], exporters: [otlp_http]}}}
`, agents, endpoint))
	agent{endpoint: agents, capture: "maven"}.complete(t)
	stopAfter(t, first, 1)
	stop()
	forward.rest(t)
	second.Stop(t)

	assert.Greater(t, forward.delayed, 5, "hand-overs that were delayed")
	got := readStreams(t, second, "spans.bin").only(t)
	checkEqual(t, reference.Spans(openCapture(t, "maven"), defaultRules), got)
}

// forwarder sends every other hand-over immediately, and the rest at the end, the last first.
type forwarder struct {
	to string

	mu      sync.Mutex
	taken   int
	held    []ptrace.Traces
	delayed int
}

func (f *forwarder) accept(traces ptrace.Traces) int {
	f.mu.Lock()
	f.taken++
	hold := f.taken%2 == 0
	if hold {
		f.held = append(f.held, traces)
		f.delayed++
	}
	f.mu.Unlock()
	if !hold && kit.SendOTLP(f.to, traces) != nil {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

func (f *forwarder) rest(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, traces := range slices.Backward(f.held) {
		require.NoError(t, kit.SendOTLP(f.to, traces))
	}
}
