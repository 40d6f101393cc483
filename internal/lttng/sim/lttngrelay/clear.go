// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Clear removes n packets of each stream after the first n, as "lttng clear" does with unread packets. It returns the
// number of removed packets.
func (s *Source) Clear(n int) (removed uint64) {
	for _, r := range s.Recordings {
		for i := range r.Streams {
			removed += s.clear(&r.Streams[i], n)
		}
	}
	return removed
}

func (s *Source) clear(stream *lttnglive.RecordedStream, n int) (removed uint64) {
	packets := 0
	stream.Steps = slices.DeleteFunc(stream.Steps, func(step lttnglive.Step) bool {
		index := step.Index
		if index.Status != lttnglive.IndexOK {
			return false
		}
		packets++
		if packets <= n || packets > 2*n {
			return false
		}
		removed++
		id := packetID{stream.ID, index.Offset}
		s.Packets--
		s.Bytes -= index.ContentLength()
		s.Events -= s.events[id]
		delete(s.events, id)
		return true
	})
	return removed
}
