// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/nested"
	"github.com/callbraid/callbraid/test/kit"
)

const (
	// maxNestedPeak is the most memory that a collector has after any nested requests, and
	// maxNestedCost the most that one of them costs.
	maxNestedPeak = 600e6
	maxNestedCost = 300e6

	refusedMetric = "otelcol_extension_memory_budget_refused_requests"

	// attackers send at the same time, until they have sent attacks requests, and an honest client has sent honestRequests.
	attackers, attacks, honestRequests = 32, 160, 5
)

// withOTLP adds an OTLP receiver to standalone.yaml, with the limits of docs/ocb.md.
const withOTLP = `
receivers: {otlp: {protocols: {grpc: {endpoint: %q, max_recv_msg_size_mib: 2, middlewares: [{id: memory_budget}]}, http: {endpoint: %q, max_request_body_size: 2097152, middlewares: [{id: memory_budget}]}}}}
service: {pipelines: {traces: {receivers: [otlp]}, metrics: {receivers: [otlp]}, logs: {receivers: [otlp]}}}
`

// otlpCollector is a collector with a shipped configuration that accepts OTLP. One of the
// addresses is empty where it doesn't speak that way.
type otlpCollector struct {
	*kit.Collector
	grpc, http string
	// spans is its metric of calls that ended.
	spans string
}

func startPair(t *testing.T) otlpCollector {
	address := testkit.Address(t)
	c := kit.Start(t, shipped(t, "gateway-pair.yaml", map[string]string{
		"endpoint: localhost:13134": "${env:HEALTH}", "port: 8887": "${env:METRICS_PORT}",
		"endpoint: localhost:4320": address, "endpoint: localhost:8890": testkit.Address(t),
		"endpoint: localhost:4317": testkit.Address(t), // no program listens there
	}))
	return otlpCollector{Collector: c, grpc: address, spans: connectorMetrics + "spans"}
}

func startStandalone(t *testing.T) otlpCollector {
	c := otlpCollector{grpc: testkit.Address(t), http: testkit.Address(t), spans: connectorMetrics + "spans"}
	configuration := shipped(t, "standalone.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:8765": testkit.Address(t),
		"endpoint: localhost:8889": testkit.Address(t), "endpoint: localhost:4040": testkit.Address(t),
	})
	c.Collector = kit.Start(t, added(t, configuration, fmt.Sprintf(withOTLP, c.grpc, c.http)), "CALLBRAID_DATA="+t.TempDir())
	return c
}

// shippedOTLP are the shipped configurations that accept OTLP, one of them with a receiver added.
var shippedOTLP = map[string]func(*testing.T) otlpCollector{"gateway-pair": startPair, "standalone": startStandalone}

// ways are the ways that reach the collector, of those without compression.
func (c otlpCollector) ways() []nested.Way {
	if c.http == "" {
		return []nested.Way{nested.GRPC}
	}
	return []nested.Way{nested.GRPC, nested.HTTP, nested.HTTPJSON}
}

func (c otlpCollector) send(t *testing.T, way nested.Way, signal nested.Signal, request []byte) error {
	t.Helper()
	address := c.http
	if way.IsGRPC() {
		address = c.grpc
	}
	return nested.Send(t.Context(), way, address, signal, request)
}

// checkHonest checks that a call is still made a span.
func (c otlpCollector) checkHonest(t *testing.T, stream byte) {
	t.Helper()
	before := c.Metric(t, c.spans)
	require.NoError(t, c.send(t, nested.GRPC, nested.Traces, oneCall(t, stream, callevent.Version)))
	c.AwaitMetric(t, before+1, c.spans)
}

// oneCall is a request with a batch of one call. Of a version that doesn't exist it can't be
// read.
func oneCall(t *testing.T, stream byte, version int64) []byte {
	t.Helper()
	packer, err := callevent.NewPacker(callevent.Stream{ID: callevent.StreamID{0: stream, 15: 1}, Epoch: 1e18, Resolution: 1e6}, callevent.MaxBatchBytes)
	require.NoError(t, err)
	e := callevent.Event{Kind: callevent.KindEnter}
	e.Function, _ = packer.Function(&callevent.Function{Qualified: "demo.Shop.sell", Display: "Shop.sell"})
	e.Lane, _ = packer.Lane(callevent.Lane{ID: 1, Name: "main"})
	require.True(t, packer.Add(&e))
	e.Kind, e.Sequence, e.Time = callevent.KindExit, 1, 1
	require.True(t, packer.Add(&e))
	packed, err := packer.Close(nil, 2, 1e18)
	require.NoError(t, err)
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	packed.To(span)
	span.Attributes().PutInt(callevent.AttributeVersion, version)
	request, err := new(ptrace.ProtoMarshaler).MarshalTraces(td)
	require.NoError(t, err)
	return request
}

// One client sends requests of 1 to 20 MB, nested as deep as they have bytes, alone and around a
// batch that can be read or not. All are refused, the collector survives, and the requests of
// others become spans.
func TestNestedRequestsDoNotEndTheCollector(t *testing.T) {
	t.Parallel()
	for name, start := range shippedOTLP {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			c.checkHonest(t, 1)
			const mb = 1_000_000
			beside := map[string][]byte{
				"alone": nil, "around a batch": nested.Inside(oneCall(t, 2, callevent.Version)),
				"around a batch that can't be read": nested.Inside(oneCall(t, 3, 99)),
			}
			for _, size := range []int{1 * mb, 2 * mb, 4 * mb, 8 * mb, 12 * mb, 20 * mb} {
				for what, batch := range beside {
					place := nested.At(nested.Traces, "resource")
					if batch == nil {
						place = nested.At(nested.Traces, "span") // a receiver drops resources without spans
					}
					for _, way := range c.ways() {
						var request []byte
						if way.IsJSON() {
							request, _ = nested.JSON(nested.At(nested.Traces, "span"), nested.Maps, size)
						} else {
							request, _ = nested.Protobuf(place, nested.Lists, size, batch)
						}
						require.Error(t, c.send(t, way, nested.Traces, request), "%d bytes %s over %s", size, what, way)
					}
				}
			}
			assert.Positive(t, c.Metric(t, refusedMetric, `reason="depth"`))
			c.checkHonest(t, 4)
			peak := c.PeakMemory(t)
			t.Logf("peak: %d MB", peak/mb)
			assert.Less(t, peak, uint64(maxNestedPeak))
			c.Stop(t)
		})
	}
}

// The deepest request within the limit uses less than 300 MB, also a compressed one.
func TestTheDeepestRequestThatFitsIsAffordable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		start func(*testing.T) otlpCollector
		way   nested.Way
		at    nested.Place
		kind  nested.Kind
	}{
		{startPair, nested.GRPC, nested.At(nested.Traces, "resource"), nested.Lists},
		{startStandalone, nested.GRPCGzip, nested.At(nested.Traces, "link"), nested.Maps},
		{startStandalone, nested.HTTP, nested.At(nested.Traces, "event"), nested.Lists},
		{startStandalone, nested.HTTPGzip, nested.At(nested.Logs, "body"), nested.Lists},
		{startStandalone, nested.HTTPJSON, nested.At(nested.Traces, "span"), nested.Lists},
	} {
		t.Run(fmt.Sprint(test.way, " ", test.at.Signal, " ", test.at.Name), func(t *testing.T) {
			t.Parallel()
			c := test.start(t)
			before := c.PeakMemory(t)
			const limit = 2 << 20
			var request []byte
			if test.way.IsJSON() {
				request, _ = nested.JSON(test.at, test.kind, limit)
			} else {
				request, _ = nested.Protobuf(test.at, test.kind, limit, nil)
			}
			err := c.send(t, test.way, test.at.Signal, request)
			t.Logf("%.200v", err)
			assert.NotContains(t, fmt.Sprint(err), "larger than max", "it fits")
			c.checkHonest(t, 1)
			cost := c.PeakMemory(t) - before
			t.Logf("cost: %d MB", cost/1_000_000)
			assert.Less(t, cost, uint64(maxNestedCost))
			c.Stop(t)
		})
	}
}

// Many clients send the deepest and the widest requests at the same time. The requests of an honest
// client become spans meanwhile.
func TestManyRequestsAtTheSameTimeAreAffordable(t *testing.T) {
	for name, start := range shippedOTLP {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			deep, _ := nested.Protobuf(nested.At(nested.Traces, "resource"), nested.Lists, 2<<20, nil)
			deepJSON, _ := nested.JSON(nested.At(nested.Traces, "span"), nested.Maps, 2<<20)
			wide := nested.Wide(2 << 20)
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			var sent, accepted atomic.Int64
			var all sync.WaitGroup
			for i := range attackers {
				way := c.ways()[i%len(c.ways())]
				request := [][]byte{deep, wide}[i/len(c.ways())%2]
				if way.IsJSON() {
					request = deepJSON
				}
				all.Go(func() {
					for ctx.Err() == nil {
						if c.send(t, way, nested.Traces, request) == nil {
							accepted.Add(1)
						}
						sent.Add(1)
					}
				})
			}
			honest := 0
			for ; ctx.Err() == nil && (honest < honestRequests || sent.Load() < attacks); honest++ {
				c.checkHonest(t, byte(honest))
			}
			cancel()
			all.Wait()
			peak := c.PeakMemory(t)
			t.Logf("peak: %d MB; %d requests, and %d honest ones", peak/1e6, sent.Load(), honest)
			assert.Zero(t, accepted.Load())
			assert.GreaterOrEqual(t, sent.Load(), int64(attacks))
			assert.GreaterOrEqual(t, honest, honestRequests)
			assert.Less(t, peak, uint64(maxNestedPeak))
			c.Stop(t)
		})
	}
}

// The limits apply to the unpacked size of a request.
func TestTheLimitOfCompressedRequestsIsTheirUnpackedSize(t *testing.T) {
	t.Parallel()
	c := startStandalone(t)
	before := c.PeakMemory(t)
	for _, way := range []nested.Way{nested.GRPCGzip, nested.HTTPGzip, nested.HTTPJSONGzip} {
		require.Error(t, c.send(t, way, nested.Traces, make([]byte, 128<<20)), way)
	}
	assert.Less(t, c.PeakMemory(t)-before, uint64(100e6))
	c.checkHonest(t, 1)
	c.Stop(t)
}
