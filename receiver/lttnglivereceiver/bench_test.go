// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// BenchmarkLogRecords makes log records of the events of a packet: function entries
// and exits with the contexts vpid, vtid and procname.
func BenchmarkLogRecords(b *testing.B) {
	recording := captured(b, "cyg1")[0]
	trace := ctf.NewTrace()
	var packet []byte
	for _, s := range recording.Streams {
		for _, piece := range s.Pieces {
			if err := trace.Append(piece.Data); err != nil {
				b.Fatal(err)
			}
		}
		for _, step := range s.Steps {
			if step.Index.Status == lttnglive.IndexOK && step.Index.ContentLength() > uint64(len(packet)) {
				packet = make([]byte, step.Index.ContentLength())
				if _, err := s.Packets.ReadAt(packet, int64(step.Index.Offset)); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	plans := make([]*plan, trace.EventClasses())
	known := newTexts()
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		reader := ctf.NewReader(trace)
		if err := reader.Begin(packet); err != nil {
			b.Fatal(err)
		}
		records := plog.NewLogs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for reader.Next() {
			e := &reader.Event
			p := plans[e.Class.Index]
			if p == nil {
				p = newPlan(e.Class, nil, mib)
				plans[e.Class.Index] = p
			}
			p.record.write(records.AppendEmpty(), e, &reader.Packet, known)
			events++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
