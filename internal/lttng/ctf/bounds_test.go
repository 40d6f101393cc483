// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The bytes after the content are padding. They are part of the packet, but no field reaches into them.
func TestSequencesEndInsideTheContent(t *testing.T) {
	for name, c := range map[string]struct {
		fields string
		n      byte
		want   string
	}{
		"numbers":            {"u8 n; u32 x[n];", 2, "expected 64 bits, got 56"},
		"numbers of a class": {"u8 n; u32 x[2];", 0, "expected 64 bits, got 56"},
		"structures":         {"u8 n; struct { u32 a; u8 b; } x[n];", 2, "expected 80 bits, got 56"},
		"bytes":              {"u8 n; u8 x[n];", 8, "expected 8 bytes, got 7"},
		"many bytes":         {"u8 n; u8 x[5000];", 0, "expected 5000 bytes, got 7"},
	} {
		t.Run(name, func(t *testing.T) {
			trace := NewTrace()
			require.NoError(t, trace.Append([]byte(`/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 32; align = 8; } := u32;
trace { major = 1; minor = 8; byte_order = le; };
stream { packet.context := struct { u8 content_size; u8 packet_size; }; };
event { name = e; fields := struct { `+c.fields+` }; };
`)))
			packet := make([]byte, 20)
			packet[0], packet[1], packet[2] = 10*8, 20*8, c.n
			r := NewReader(trace)
			require.NoError(t, r.Begin(packet))
			require.False(t, r.Next())
			require.ErrorContains(t, r.Err(), c.want)
		})
	}
}
