// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/pairing"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/internal/testkit/reference"
)

// BenchmarkConsumeTraces pairs a captured Maven build of 887,366 events on one thread, with a next
// component that does nothing: in order; with batches of three connections out of order; with all calls
// left out, which must cost far less; and with these folded into sums by function and by call path.
func BenchmarkConsumeTraces(b *testing.B) {
	run, err := reference.Open("../../../testdata/bytefrog/maven.zip")
	require.NoError(b, err)
	inOrder := packing{packers: 1, deal: 1_000, bytes: 256 << 10, perCall: 1}
	outOfOrder := packing{packers: 3, deal: 500, bytes: 256 << 10, displaced: 6, perCall: 1}
	leaveOut := func(c *Config) { c.MinDuration = 24 * time.Hour }
	folding := func(set *Settings) {
		set.Sums, set.SumSettings = unreadSums{}, &callsum.Settings{By: callsum.FunctionsAndPaths, MaxPaths: 1_000_000}
	}
	for _, bench := range []struct {
		name   string
		way    packing
		change func(*Config)
		sums   func(*Settings)
	}{
		{"in_order", inOrder, func(*Config) {}, func(*Settings) {}},
		{"out_of_order", outOfOrder, func(*Config) {}, func(*Settings) {}},
		{"left_out", inOrder, leaveOut, func(*Settings) {}},
		{"left_out_and_folded", inOrder, leaveOut, folding},
	} {
		b.Run(bench.name, func(b *testing.B) {
			calls := bench.way.pack(b, run)
			cputime.Events(b, len(run.Events), func() { consumeTo(b, calls, bench.change, consumertest.NewNop(), bench.sums) })
		})
	}
}

// unreadSums receive the sums of calls, and do nothing with them.
type unreadSums struct{}

func (unreadSums) Begin() SourceSums               { return unreadSums{} }
func (unreadSums) Bytes() int64                    { return 0 }
func (unreadSums) GiveWay()                        {}
func (unreadSums) Add(*callsum.Increment, *Source) {}
func (unreadSums) Kept(*pairing.Output, *Identity) {}
func (unreadSums) End()                            {}

// BenchmarkCopySpans copies the spans of the same build.
func BenchmarkCopySpans(b *testing.B) {
	run, err := reference.Open("../../../testdata/bytefrog/maven.zip")
	require.NoError(b, err)
	sink := new(consumertest.TracesSink)
	consumeTo(b, packing{packers: 1, deal: 1_000, bytes: 256 << 10, perCall: 1}.pack(b, run), func(*Config) {}, sink, func(*Settings) {})
	cputime.CopyTraces(b, len(run.Events), sink.AllTraces()...)
}

func consumeTo(b *testing.B, calls []ptrace.Traces, change func(*Config), next consumer.Traces, sums func(*Settings)) {
	cfg, set := DefaultConfig(), quietSettings(next)
	change(cfg)
	sums(&set)
	p, err := New(set, cfg)
	require.NoError(b, err)
	for _, td := range calls {
		require.NoError(b, p.ConsumeTraces(context.Background(), td))
	}
	require.NoError(b, p.Shutdown(context.Background()))
}

// BenchmarkSmallHandOver measures a hand-over with one call: the cost that does not depend on the
// number of events.
func BenchmarkSmallHandOver(b *testing.B) {
	p, err := New(quietSettings(consumertest.NewNop()), DefaultConfig())
	require.NoError(b, err)
	require.NoError(b, p.Start(context.Background(), componenttest.NewNopHost()))
	defer func() { require.NoError(b, p.Shutdown(context.Background())) }()
	// The first one is paired, and all others are duplicates.
	td := traces(b, call(1, "f", 0))
	cputime.Events(b, 2, func() { require.NoError(b, p.ConsumeTraces(context.Background(), td)) })
}

// BenchmarkCopySmallHandOver copies the same hand-over.
func BenchmarkCopySmallHandOver(b *testing.B) {
	cputime.CopyTraces(b, 2, traces(b, call(1, "f", 0)))
}

// BenchmarkOtherSpans measures spans that are no batches and pass unchanged, with the decoding that
// every span from the network needs.
func BenchmarkOtherSpans(b *testing.B) {
	request := otherSpans(b)
	p, err := New(quietSettings(consumertest.NewNop()), DefaultConfig())
	require.NoError(b, err)
	cputime.Events(b, manyOthers, func() {
		td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(request)
		require.NoError(b, err)
		require.NoError(b, p.ConsumeTraces(context.Background(), td))
	})
}

// BenchmarkDecodeOtherSpans only decodes them.
func BenchmarkDecodeOtherSpans(b *testing.B) {
	request := otherSpans(b)
	cputime.Events(b, manyOthers, func() {
		_, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(request)
		require.NoError(b, err)
	})
}

// manyOthers is the number of spans in a request.
const manyOthers = 512

// otherSpans is a request of spans as an HTTP server receives it.
func otherSpans(b *testing.B) []byte {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "shop")
	ss := rs.ScopeSpans().AppendEmpty()
	for range manyOthers {
		span := ss.Spans().AppendEmpty()
		span.SetName("GET /cart")
		for _, key := range []string{"http.request.method", "http.route", "url.path", "server.address", "thread.name"} {
			span.Attributes().PutStr(key, "value")
		}
		span.Attributes().PutInt("thread.id", 1)
	}
	request, err := new(ptrace.ProtoMarshaler).MarshalTraces(td)
	require.NoError(b, err)
	return request
}
