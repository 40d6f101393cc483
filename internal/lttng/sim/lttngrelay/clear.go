// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Clear takes n packets of each stream away, behind as many that stay, as "lttng clear"
// does with what no viewer has read. It returns how many were taken away.
func (s *Source) Clear(n int) (gone uint64) {
	for _, r := range s.Recordings {
		for i := range r.Streams {
			gone += s.clear(&r.Streams[i], n)
		}
	}
	return gone
}

func (s *Source) clear(stream *lttnglive.RecordedStream, n int) (gone uint64) {
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
		gone++
		id := packetID{stream.ID, index.Offset}
		s.Packets--
		s.Bytes -= index.ContentLength()
		s.Events -= s.events[id]
		delete(s.events, id)
		return true
	})
	return gone
}
