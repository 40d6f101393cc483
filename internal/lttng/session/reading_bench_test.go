// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/sim/usttrace"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

// writtenEvents is the number of events in the traces, so many that a reader's start and its work for each class do
// not matter.
const writtenEvents = 2_000_000

// BenchmarkReadLTTng reads the same traces with babeltrace2, the reference reader, and with the parts of this
// receiver: in order of time, from files, without a relay daemon. It measures processor time. Run it with -cpu 1,
// because babeltrace2 uses one core. Without contexts the thread of a call is unknown, so there are no spans.
func BenchmarkReadLTTng(b *testing.B) {
	for _, contexts := range []bool{true, false} {
		name := "bare"
		if contexts {
			name = "contexts"
		}
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			written, err := usttrace.Write(dir, usttrace.Options{Events: writtenEvents, Contexts: contexts})
			require.NoError(b, err)
			played := openPlayed(b, dir)
			b.Run("babeltrace2Dummy", func(b *testing.B) { lttngdata.BenchmarkBabeltrace(b, written.Events, "-o", "dummy", dir) })
			b.Run("fields", func(b *testing.B) { benchmarkFields(b, played, written) })
			b.Run("babeltrace2Text", func(b *testing.B) { lttngdata.BenchmarkBabeltrace(b, written.Events, dir) })
			b.Run("logRecords", func(b *testing.B) { benchmarkLogRecords(b, played, written) })
			b.Run("copiedRecords", func(b *testing.B) { benchmarkCopiedRecords(b, played, written) })
			if contexts {
				b.Run("spans", func(b *testing.B) { benchmarkSpans(b, played, written) })
			}
		})
	}
}

// benchmarkFields reads every event and the value of each of its fields.
func benchmarkFields(b *testing.B, p *played, written usttrace.Counts) {
	cputime.Events(b, written.Events, func() {
		events, sum := 0, uint64(0)
		var values []fieldValues
		p.merge(b, func(e *ctf.Event, _ *ctf.Packet) {
			events++
			for len(values) <= e.Class.Index {
				values = append(values, nil)
			}
			if values[e.Class.Index] == nil {
				values[e.Class.Index] = newFieldValues(e.Class)
			}
			sum += e.Clock + values[e.Class.Index].sum(&e.Values)
		})
		require.Equal(b, written.Events, events)
		require.NotZero(b, sum)
	})
}

// benchmarkLogRecords makes log records from every event, for a logs pipeline.
func benchmarkLogRecords(b *testing.B, p *played, written usttrace.Counts) {
	cputime.Events(b, written.Events, func() {
		var records atomic.Int64
		next, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
			records.Add(int64(logs.LogRecordCount()))
			return nil
		})
		require.NoError(b, err)
		p.readSession(b, nil, next)
		require.EqualValues(b, written.Events, records.Load())
	})
}

// benchmarkCopiedRecords copies log records of the same events, some thousand of them repeatedly.
func benchmarkCopiedRecords(b *testing.B, p *played, written usttrace.Counts) {
	const enough = 10_000
	some := plog.NewLogs()
	next, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		if some.LogRecordCount() < enough {
			logs.ResourceLogs().MoveAndAppendTo(some.ResourceLogs())
		}
		return nil
	})
	require.NoError(b, err)
	p.readSession(b, nil, next)
	times := written.Events / some.LogRecordCount()
	cputime.CopyLogs(b, times*some.LogRecordCount(), times, some)
}

// benchmarkSpans packs the call events and pairs them to spans.
func benchmarkSpans(b *testing.B, p *played, written usttrace.Counts) {
	cputime.Events(b, written.Events, func() {
		spans := 0
		next, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
			spans += td.SpanCount()
			return nil
		})
		require.NoError(b, err)
		factory := stackpairingprocessor.NewFactory()
		pairing, err := factory.CreateTraces(context.Background(), processortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), next)
		require.NoError(b, err)
		p.readSession(b, pairing, nil)
		require.NoError(b, pairing.Shutdown(context.Background()))
		require.Equal(b, written.Calls, spans)
	})
}

// fieldValues are the fields of an event class that have values. Those of the event's header are its class and its
// time.
type fieldValues []*ctf.Field

func newFieldValues(class *ctf.EventClass) fieldValues {
	var fields fieldValues
	for _, root := range []*ctf.Field{class.Stream.EventCommonContext, class.Context, class.Fields} {
		fields = append(fields, valuesBelow(root)...)
	}
	return fields
}

func valuesBelow(f *ctf.Field) (fields fieldValues) {
	if f.Kind != ctf.Struct {
		return fieldValues{f}
	}
	for _, m := range f.Members {
		fields = append(fields, valuesBelow(m)...)
	}
	return fields
}

// sum adds up numbers of all values, so that each value is read. There are no variants.
func (fields fieldValues) sum(v *ctf.Values) (sum uint64) {
	for _, f := range fields {
		if f.Kind == ctf.Array {
			sum += sumOfElements(v, f)
		} else {
			sum += sumOfScalar(v, f)
		}
	}
	return sum
}

// sumOfElements returns the sum for an array of numbers.
func sumOfElements(v *ctf.Values, f *ctf.Field) (sum uint64) {
	for i := range v.Len(f) {
		element := v.Element(f, i)
		sum += sumOfScalar(&element, f.Members[0])
	}
	return sum
}

func sumOfScalar(v *ctf.Values, f *ctf.Field) uint64 {
	switch f.Kind {
	case ctf.Float:
		return uint64(v.Float(f))
	case ctf.Text:
		return uint64(len(v.Text(f)))
	case ctf.Bytes:
		return uint64(len(v.Bytes(f)))
	default:
		return v.Uint(f)
	}
}
