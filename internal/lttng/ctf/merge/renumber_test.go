// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

func TestEndedStreamsUseNoMemory(t *testing.T) {
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append([]byte(`/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; };
stream { id = 0; packet.context := struct { integer { size = 64; map = clock.c.value; } timestamp_begin; }; };
`)))
	m := New(trace, Options{})
	first, last := m.AddStream(0, "the first"), m.AddStream(1, "the last")
	first.Promise(0, 1000)
	last.Promise(0, 1000)
	for id := range uint64(1000) {
		s := m.AddStream(2+id, "in between")
		s.Promise(0, id)
		s.End()
		require.Equal(t, StreamEnd, m.Next())
		require.Same(t, s, m.Stream)
		require.Equal(t, Nothing, m.Next())
		require.LessOrEqual(t, len(m.streams), 8)
		require.LessOrEqual(t, len(m.order.places), 8)
	}
	last.End()
	first.End()
	// They are in the order of AddStream, as are results of the same time and instance.
	for _, s := range []*Stream{first, last} {
		require.Equal(t, StreamEnd, m.Next())
		require.Same(t, s, m.Stream)
	}
}
