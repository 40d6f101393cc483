// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzStore makes spans and call paths of bytes, five each, with few IDs, so that they call each other in circles
// and arrive again, in a small store. For any input it ends, no call is lost, and check passes.
func FuzzStore(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 1, 0, 3, 4})
	f.Add([]byte{8, 1, 2, 3, 200, 8, 2, 3, 3, 100, 8, 3, 1, 3, 50})
	f.Add([]byte{4, 9, 1, 1, 1, 4, 1, 9, 2, 2, 1, 4, 9, 3, 3, 64, 5, 5, 0, 0, 7, 7, 7, 7, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		set := settings()
		c := newClock(&set)
		set.MaxNodes, set.MaxPending, set.MaxServices, set.MaxKeptSpans = 12, 8, 2, 5
		set.MaxNameBytes, set.MaxNamesBytes, set.PendingTimeout = 2, 10*bytesOfFunction, 20*time.Second
		if len(data) > 0 && data[0]&1 == 0 {
			set.MaxNodes, set.MaxPending = 1000, 1000
		}
		s := NewStore(set)
		windows := 0
		for ; len(data) >= 5; data = data[5:] {
			service, what := fmt.Sprint("s", data[0]&3), data[0]>>2&15
			switch what {
			case 0:
				s.Reset(service)
			case 1:
				s.ResetAll()
			case 2:
				c.pass(time.Duration(data[1]) * time.Second / 8)
			case 3:
				if _, _, err := s.openWindow(service, Calls); err == nil {
					windows++
				}
			case 4:
				s.FoldSamples(Origin{Service: service}, Kind{Type: fmt.Sprint(data[1] & 1)}, Sample{
					Frames: []Frame{{Function: fmt.Sprint(data[2] & 7)}, {Function: fmt.Sprint(data[3] & 7)}}, Count: 1, Value: int64(int8(data[4])),
				})
			case 5:
				s.FoldPaths(Origin{Service: service}, grown(fmt.Sprint(data[1]&7, "/", data[2]&7, "/", data[3]&7)), time.Duration(data[4])*time.Second)
			default:
				s.Fold(Origin{Service: service}, []Span{fuzzedSpan(data)})
			}
			check(t, s)
		}
		for _, service := range s.Services() {
			calls := uint64(0)
			snapshot, ok := s.Snapshot(service.Name, Calls)
			require.True(t, ok)
			for i, n := range snapshot.Nodes {
				require.Less(t, int(n.Parent), i)
				require.GreaterOrEqual(t, n.Self, int64(0))
				calls += n.Calls
			}
			require.Equal(t, service.Calls, calls)
		}
	})
}

func fuzzedSpan(data []byte) Span {
	span := Span{
		Trace: TraceID{data[1] >> 7}, ID: SpanID{data[1] & 15}, ParentTrace: TraceID{data[2] >> 7}, Parent: SpanID{data[2] & 15},
		Function: fmt.Sprint(data[3] & 15), File: fmt.Sprint(data[3] >> 4), Start: 1, End: 1 + uint64(data[4]),
	}
	span.Remote, span.Truncated, span.Error = data[1]&64 != 0, data[2]&64 != 0, data[2]&32 != 0
	span.Calls, span.CallsTime = uint64(data[4]>>6), int64(data[4]&31)
	span.HasThread, span.Thread = data[1]&32 != 0, int64(data[3])
	return span
}
