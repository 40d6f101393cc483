// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"encoding/binary"
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// mix fills a batch of 256 KiB: events of 300 functions on 10 lanes, one in a hundred with an
// exception. Tables number names in the order of their entry, so the events have the indexes
// already. Looking up the name of an event is the receiver's work.
type mix struct {
	events     []Event
	functions  []*Function
	lanes      []Lane
	exceptions []string
}

func newMix() *mix {
	m := &mix{exceptions: []string{"java.lang.IllegalStateException", "org.apache.maven.model.building.ModelBuildingException"}}
	for i := range 300 {
		class := fmt.Sprintf("org.codehaus.plexus.component.repository.Repository%d", i/10)
		m.functions = append(m.functions, &Function{
			Qualified: fmt.Sprintf("%s.method%d", class, i), Display: fmt.Sprintf("Repository%d.method%d", i/10, i),
			Text: fmt.Sprintf("%s.method%d;1;(Ljava/lang/String;)V", class, i),
		})
	}
	for i := range 10 {
		m.lanes = append(m.lanes, Lane{ID: uint64(i), Name: fmt.Sprintf("pool-1-thread-%d", i)})
	}
	kinds := []Kind{KindEnter, KindExit}
	for i := range 13_000 {
		e := Event{
			Sequence: uint64(1_000_000 + i), Time: int64(50_000 + i/64), Kind: kinds[i%2],
			Lane: uint16(i / 100 % 10), Function: uint16(i * 7 % 300), Line: uint32(i % 2 * 100),
		}
		if i%100 == 99 {
			e.Kind, e.Exception = KindThrow, uint16(1+i/100%2)
		}
		m.events = append(m.events, e)
	}
	return m
}

// pack packs the mix into one batch.
func (m *mix) pack(b *testing.B, p *Packer) Packed {
	p.Reset()
	for _, f := range m.functions {
		p.Function(f)
	}
	for _, l := range m.lanes {
		p.Lane(l)
	}
	for _, e := range m.exceptions {
		p.Exception(e)
	}
	for i := range m.events {
		if !p.Add(&m.events[i]) {
			b.Fatalf("event %d doesn't fit", i)
		}
	}
	packed, err := p.Close(nil, 1_013_000, testStream.Epoch)
	if err != nil {
		b.Fatal(err)
	}
	return packed
}

var sum uint64 // the result of the benchmarks, so that the compiler does not remove their work

func readAll(b *testing.B, batch *Batch, data []byte, events []Event) {
	if err := batch.Unpack(data); err != nil {
		b.Fatal(err)
	}
	read := uint64(0)
	for first := 0; first < batch.Len(); {
		n := batch.Events(events, first)
		for i := range events[:n] {
			read += events[i].Sequence ^ uint64(events[i].Time)
		}
		first += n
	}
	sum += read
}

func benchmark(b *testing.B, round func(m *mix, p *Packer, batch *Batch, events []Event)) {
	m := newMix()
	p, err := NewPacker(testStream, 512<<10)
	if err != nil {
		b.Fatal(err)
	}
	batch, events := &Batch{}, make([]Event, 512)
	round(m, p, batch, events)
	cputime.Events(b, len(m.events), func() { round(m, p, batch, events) })
}

func BenchmarkPack(b *testing.B) {
	benchmark(b, func(m *mix, p *Packer, _ *Batch, _ []Event) {
		m.pack(b, p)
	})
}

func BenchmarkUnpack(b *testing.B) {
	var data []byte
	benchmark(b, func(m *mix, p *Packer, batch *Batch, events []Event) {
		if data == nil {
			data = m.pack(b, p).Data
		}
		readAll(b, batch, data, events)
	})
}

func BenchmarkPackUnpack(b *testing.B) {
	benchmark(b, func(m *mix, p *Packer, batch *Batch, events []Event) {
		readAll(b, batch, m.pack(b, p).Data, events)
	})
}

// BenchmarkFixedWidth writes the same events with fixed widths, as the standard library does,
// and reads them.
func BenchmarkFixedWidth(b *testing.B) {
	var data []byte
	benchmark(b, func(m *mix, _ *Packer, _ *Batch, _ []Event) {
		data = data[:0]
		for i := range m.events {
			e := &m.events[i]
			data = binary.LittleEndian.AppendUint64(data, e.Sequence)
			data = binary.LittleEndian.AppendUint64(data, uint64(e.Time))
			data = append(data, byte(e.Kind))
			data = binary.LittleEndian.AppendUint16(data, e.Lane)
			data = binary.LittleEndian.AppendUint16(data, e.Function)
			data = binary.LittleEndian.AppendUint32(data, e.Line)
			data = binary.LittleEndian.AppendUint16(data, e.Exception)
		}
		read := uint64(0)
		for d := data; len(d) >= 27; d = d[27:] {
			e := Event{
				Sequence: binary.LittleEndian.Uint64(d), Time: int64(binary.LittleEndian.Uint64(d[8:])), Kind: Kind(d[16]),
				Lane: binary.LittleEndian.Uint16(d[17:]), Function: binary.LittleEndian.Uint16(d[19:]),
				Line: binary.LittleEndian.Uint32(d[21:]), Exception: binary.LittleEndian.Uint16(d[25:]),
			}
			read += e.Sequence ^ uint64(e.Time) + uint64(e.Kind) + uint64(e.Lane) + uint64(e.Function) + uint64(e.Line) + uint64(e.Exception)
		}
		sum += read
	})
}

// BenchmarkPackUnpackThroughSpan is the path inside one collector.
func BenchmarkPackUnpackThroughSpan(b *testing.B) {
	benchmark(b, func(m *mix, p *Packer, batch *Batch, events []Event) {
		traces := ptrace.NewTraces()
		span := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		m.pack(b, p).To(span)
		data, err := Data(span)
		if err != nil {
			b.Fatal(err)
		}
		readAll(b, batch, data, events)
	})
}

// BenchmarkPackUnpackThroughOTLP is the path between two collectors.
func BenchmarkPackUnpackThroughOTLP(b *testing.B) {
	var marshaler ptrace.ProtoMarshaler
	var unmarshaler ptrace.ProtoUnmarshaler
	benchmark(b, func(m *mix, p *Packer, batch *Batch, events []Event) {
		traces := ptrace.NewTraces()
		m.pack(b, p).To(traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
		bytes, err := marshaler.MarshalTraces(traces)
		if err != nil {
			b.Fatal(err)
		}
		back, err := unmarshaler.UnmarshalTraces(bytes)
		if err != nil {
			b.Fatal(err)
		}
		data, err := Data(back.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0))
		if err != nil {
			b.Fatal(err)
		}
		readAll(b, batch, data, events)
	})
}
