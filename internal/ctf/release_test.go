// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A trace has thousands of streams, each with a reader that waits for its next packet.
func TestAReaderKeepsNoLargeSpaceBehindAPacket(t *testing.T) {
	trace := NewTrace()
	require.NoError(t, trace.Append([]byte(`/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
stream { id = 0; };
event { name = e; fields := struct { integer { size = 1; } a[800000]; }; };
`)))
	r := NewReader(trace)
	for range 2 {
		require.NoError(t, r.Begin(make([]byte, 100000)))
		require.True(t, r.Next())
		require.Equal(t, 800000, r.Event.Len(r.Event.Class.Fields.Members[0]))
		require.False(t, r.Next())
		require.NoError(t, r.Err())
		require.LessOrEqual(t, cap(r.m.slots)+cap(r.Event.slots), keptSlots)
	}
}
