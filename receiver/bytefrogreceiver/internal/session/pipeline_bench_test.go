// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

// These benchmarks have the whole way of events, from the bytes of a captured Maven build as they arrived
// on three connections. Benchmarks of one part do not show how the parts share the caches of the CPU and
// the garbage collector.

// The build is played several times in one run, as the agent of a longer program would send it. So the
// cost of the start counts little.
const (
	builds      = 4
	mavenEvents = builds * 887_366
	// mavenSpans is the number of calls that ended. Each build leaves one open. The last of these ends
	// with the run, because no break follows.
	mavenSpans = builds * 442_770
)

// BenchmarkBytesToBatches decodes, names and packs.
func BenchmarkBytesToBatches(b *testing.B) {
	maven := openMaven(b)
	cputime.Events(b, mavenEvents, func() {
		maven.play(b, discard(func(ptrace.Traces) {}))
	})
}

// BenchmarkSumBytes adds up the same bytes.
func BenchmarkSumBytes(b *testing.B) {
	var data [][]byte
	for _, connections := range openMaven(b).data {
		data = append(data, connections...)
	}
	cputime.Sum(b, mavenEvents, data...)
}

// BenchmarkBytesToSpans makes finished spans with their attributes.
func BenchmarkBytesToSpans(b *testing.B) {
	maven := openMaven(b)
	cputime.Events(b, mavenEvents, func() {
		spans := 0
		maven.pair(b, nil, func(td ptrace.Traces) { spans += td.SpanCount() })
		require.Equal(b, mavenSpans, spans)
	})
}

// BenchmarkBytesToNothing does the same work, and leaves all calls out.
func BenchmarkBytesToNothing(b *testing.B) {
	maven := openMaven(b)
	cputime.Events(b, mavenEvents, func() {
		spans := 0
		maven.pair(b, map[string]any{"min_duration": "24h"}, func(td ptrace.Traces) { spans += td.SpanCount() })
		// Only main is not short: it never returned.
		require.Equal(b, builds, spans)
	})
}

// BenchmarkBuildSpans only builds as many of the same spans, attribute by attribute: the cost of the
// pdata library. It reads them from plain structs, the first of the build again and again, which costs
// very little.
func BenchmarkBuildSpans(b *testing.B) {
	maven := openMaven(b)
	var plain []plainSpan
	maven.pair(b, nil, func(td ptrace.Traces) {
		if len(plain) < 16_384 {
			plain = append(plain, plainSpans(td)...)
		}
	})
	const perCall = 2048
	cputime.Events(b, mavenEvents, func() {
		for built := 0; built < mavenSpans; built += perCall {
			at := built % (len(plain) - perCall)
			build(plain[at : at+min(perCall, mavenSpans-built)])
		}
	})
	// The live memory decides how often garbage is collected, so it is that of BenchmarkBytesToSpans.
	runtime.KeepAlive(maven)
}

// plainSpan has the content of a span without events and links.
type plainSpan struct {
	name         string
	trace        pcommon.TraceID
	span, parent pcommon.SpanID
	start, end   pcommon.Timestamp
	status       ptrace.StatusCode
	keys         []string
	texts        []string
	numbers      []int64
}

func plainSpans(td ptrace.Traces) (plain []plainSpan) {
	for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		p := plainSpan{
			name: span.Name(), trace: span.TraceID(), span: span.SpanID(), parent: span.ParentSpanID(),
			start: span.StartTimestamp(), end: span.EndTimestamp(), status: span.Status().Code(),
		}
		for key, value := range span.Attributes().All() {
			p.keys, p.texts, p.numbers = append(p.keys, key), append(p.texts, value.Str()), append(p.numbers, value.Int())
		}
		plain = append(plain, p)
	}
	return plain
}

func build(plain []plainSpan) ptrace.Traces {
	built := ptrace.NewTraces()
	spans := built.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	spans.EnsureCapacity(len(plain))
	for i := range plain {
		p, span := &plain[i], spans.AppendEmpty()
		span.SetName(p.name)
		span.SetKind(ptrace.SpanKindInternal)
		span.SetTraceID(p.trace)
		span.SetSpanID(p.span)
		span.SetParentSpanID(p.parent)
		span.SetStartTimestamp(p.start)
		span.SetEndTimestamp(p.end)
		span.Status().SetCode(p.status)
		span.Attributes().EnsureCapacity(len(p.keys))
		for j, key := range p.keys {
			if p.texts[j] != "" {
				span.Attributes().PutStr(key, p.texts[j])
			} else {
				span.Attributes().PutInt(key, p.numbers[j])
			}
		}
	}
	return built
}

// recording is a capture that can be played into data connections.
type recording struct {
	index []capture.Arrival
	// data has the bytes of each connection, for each build.
	data [][][]byte
}

func openMaven(b *testing.B) recording {
	b.Helper()
	c := openCapture(b, "maven")
	r := recording{index: c.Index}
	for build := range uint32(builds) {
		var data [][]byte
		for _, bytes := range c.Data {
			data = append(data, shifted(b, bytes, build*mavenEvents/builds, build*20_000))
		}
		r.data = append(r.data, data)
	}
	return r
}

// shifted returns the data of a connection with larger numbers and later times.
func shifted(b *testing.B, data []byte, numbers, milliseconds uint32) []byte {
	b.Helper()
	data = slices.Clone(data)
	buf := make([]bytefrog.Event, 1024)
	// The first two bytes are data hello, which the handshake reads.
	for rest := data[2:]; len(rest) > 0; {
		events, size := bytefrog.DecodeEvents(buf, rest)
		encoded := rest[:0]
		for _, e := range buf[:events] {
			e.Sequence += numbers
			e.Time += milliseconds
			encoded = bytefrog.AppendEvent(encoded, e)
		}
		if rest = rest[size:]; events < len(buf) && len(rest) > 0 {
			_, size, err := bytefrog.DecodeData(rest, bytefrog.MaxString)
			require.NoError(b, err)
			rest = rest[size:]
		}
	}
	return data
}

// pair plays the recording through a stack_pairing processor with these settings.
func (r recording) pair(b *testing.B, settings map[string]any, spans func(ptrace.Traces)) {
	b.Helper()
	factory := stackpairingprocessor.NewFactory()
	config := factory.CreateDefaultConfig()
	// The builds follow each other faster than in their clock.
	require.NoError(b, confmap.NewFromStringMap(map[string]any{"max_clock_jump": "1h"}).Unmarshal(config))
	require.NoError(b, confmap.NewFromStringMap(settings).Unmarshal(config))
	p, err := factory.CreateTraces(context.Background(), processortest.NewNopSettings(factory.Type()), config, discard(spans))
	require.NoError(b, err)
	r.play(b, p)
	require.NoError(b, p.Shutdown(context.Background()))
}

// play feeds the bytes of the recording to data connections, in the pieces and in the order in which they
// arrived.
func (r recording) play(b *testing.B, next consumer.Traces) {
	b.Helper()
	run := startedRun(b, next)
	connections := make([]*dataConnection, len(r.data[0]))
	index := map[string]int{}
	for i := range connections {
		d, err := newDataConnection(run, &piece{})
		require.NoError(b, err)
		// The recording has all bytes in order: no connection waits for another one to read.
		d.member.Leave()
		d.member = run.pace.NewMember(func() bool { return true })
		d.member.Join()
		connections[i], index[capture.DataFile(i)] = d, i
	}
	run.batches.SendFrom(func(send func(callevent.Packed, pcommon.Resource)) {
		for _, d := range connections {
			d.batch.SetSend(func(batch callevent.Packed) { send(batch, run.Resource) })
		}
		r.playInto(b, run, connections, index)
	})
}

// playInto feeds the bytes to connections. index has the connection of each file.
func (r recording) playInto(b *testing.B, run *run, connections []*dataConnection, index map[string]int) {
	b.Helper()
	begin := time.Now()
	for build, data := range r.data {
		run.breaks.add(callevent.Point(uint64(build)*mavenEvents/builds, callevent.CauseSuspended))
		for _, a := range r.index {
			now := begin.Add(a.Time + time.Duration(build)*20*time.Second)
			for _, d := range connections {
				d.batch.Attend(now)
			}
			if i, ok := index[a.File]; ok && a.Kind == capture.In {
				connections[i].feedPiece(b, data[i][max(a.Offset, 2):a.Offset+a.Length], now)
			}
		}
	}
	for _, d := range connections {
		d.batch.Settle(time.Now())
		d.batch.Flush()
	}
}

// feedPiece feeds a piece to the connection as if it was read.
func (d *dataConnection) feedPiece(b *testing.B, rest []byte, now time.Time) {
	b.Helper()
	conn := d.in.Conn().(*piece)
	for len(rest) > 0 {
		conn.bytes = rest
		n, err := d.in.Read(now, time.Time{})
		require.NoError(b, err)
		rest = rest[n:]
		require.True(b, d.process(n, now))
		d.batch.Attend(now)
	}
}
