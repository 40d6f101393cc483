// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// BenchmarkLogRecords makes log records from the events of a packet: function entries and exits with the contexts
// vpid, vtid and procname.
func BenchmarkLogRecords(b *testing.B) {
	c, err := capture.Open(lttngdata.CaptureFile(b, "cyg1"))
	require.NoError(b, err)
	recordings, err := c.Recordings()
	require.NoError(b, err)
	trace := readMetadata(b, recordings[0])
	var largest []byte
	forEachPacket(b, recordings[0], func(packet []byte) {
		if len(packet) > len(largest) {
			largest = packet
		}
	})
	plans := make([]*Plan, trace.EventClasses())
	known := NewTexts()
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		reader := ctf.NewReader(trace)
		if err := reader.Begin(largest); err != nil {
			b.Fatal(err)
		}
		records := plog.NewLogs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for reader.Next() {
			e := &reader.Event
			p := plans[e.Class.Index]
			if p == nil {
				p = NewPlan(e.Class, nil, false, Records{MaxBytes: 1 << 20})
				plans[e.Class.Index] = p
			}
			p.Record.Write(records.AppendEmpty(), e, &reader.Packet, nil, known)
			events++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
