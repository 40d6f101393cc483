// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"testing"

	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// BenchmarkDecodeEvents decodes the data connections of the captured Maven build: call events with map messages between
// them. The 1,867 map messages cause all allocations, two each.
func BenchmarkDecodeEvents(b *testing.B) {
	data := openCapture(b, "maven").Data
	buf := make([]Event, 1024)
	const events = 887_366
	cputime.Events(b, events, func() {
		decoded := 0
		for _, stream := range data {
			decoded += decodeAll(b, stream[dataHelloSize:], buf)
		}
		if decoded != events {
			b.Fatalf("decoded %d events, expected %d", decoded, events)
		}
	})
}

// BenchmarkSumEvents adds the same bytes, as a lower bound.
func BenchmarkSumEvents(b *testing.B) {
	var data [][]byte
	for _, stream := range openCapture(b, "maven").Data {
		data = append(data, stream[dataHelloSize:])
	}
	cputime.Sum(b, 887_366, data...)
}

// decodeAll decodes a data connection after its data hello and returns the number of call events.
func decodeAll(tb testing.TB, b []byte, buf []Event) (events int) {
	for {
		n, consumed := DecodeEvents(buf, b)
		events += n
		b = b[consumed:]
		if len(b) == 0 {
			return events
		}
		if n == len(buf) {
			continue
		}
		_, size, err := DecodeData(b, MaxString)
		if err != nil || size == 0 {
			tb.Fatalf("after %d events, %d bytes left: size %d, error %v", events, len(b), size, err)
		}
		b = b[size:]
	}
}

// BenchmarkAppendEvent writes alternating entries and exits.
func BenchmarkAppendEvent(b *testing.B) {
	buf := make([]byte, 0, 8192)
	e := Event{Time: 1, Sequence: 2, Method: 3, Line: 4, Thread: 5}
	cputime.Events(b, 2, func() {
		if len(buf) > cap(buf)-2*MaxEventSize {
			buf = buf[:0]
		}
		e.Type = TypeMethodEntry
		buf = AppendEvent(buf, e)
		e.Type = TypeMethodExit
		buf = AppendEvent(buf, e)
	})
}
