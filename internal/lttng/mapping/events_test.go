// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// readMetadata returns the trace that the metadata of a recording declares.
func readMetadata(t testing.TB, recording *lttnglive.Recording) *ctf.Trace {
	t.Helper()
	trace := ctf.NewTrace()
	for _, s := range recording.Streams {
		for _, piece := range s.Pieces {
			require.NoError(t, trace.Append(piece.Data))
		}
	}
	return trace
}

// forEachPacket calls do with each packet of a recording, stream by stream.
func forEachPacket(t testing.TB, recording *lttnglive.Recording, do func([]byte)) {
	t.Helper()
	for _, s := range recording.Streams {
		for _, step := range s.Steps {
			if step.Index.Status != lttnglive.IndexOK {
				continue
			}
			packet := make([]byte, step.Index.ContentLength())
			_, err := s.Packets.ReadAt(packet, int64(step.Index.Offset))
			require.NoError(t, err)
			do(packet)
		}
	}
}

// forEachEvent calls do with each event of a recording, and the plan of its class.
func forEachEvent(t testing.TB, recording *lttnglive.Recording, do func(*Plan, *ctf.Event, *ctf.Packet)) {
	t.Helper()
	trace, plans := readMetadata(t, recording), map[*ctf.EventClass]*Plan{}
	forEachPacket(t, recording, func(packet []byte) {
		reader := ctf.NewReader(trace)
		require.NoError(t, reader.Begin(packet))
		for reader.Next() {
			class := reader.Event.Class
			if plans[class] == nil {
				plans[class] = NewPlan(class, nil, false, Records{MaxBytes: 1 << 20})
			}
			do(plans[class], &reader.Event, &reader.Packet)
		}
		require.NoError(t, reader.Err())
	})
}
