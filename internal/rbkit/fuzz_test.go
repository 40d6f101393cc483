// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// maxSeed is how long messages of the corpus are: longer ones are slow to mutate, and say
// no more.
const maxSeed = 20_000

func FuzzDecode(f *testing.F) {
	for name := range captures {
		for i, m := range openCapture(f, name).Messages {
			if i%4 == 0 && len(m.Data) <= maxSeed {
				f.Add(m.Data)
			}
		}
		for _, m := range openCapture(f, name).Replies {
			f.Add(m.Data)
		}
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		d, c := NewDecoder(Limits{}), &Collection{}
		n, err := d.Decode(message, c)
		if err != nil {
			bad := &Error{}
			require.ErrorAs(t, err, &bad)
			require.LessOrEqual(t, bad.Offset, len(message))
			require.LessOrEqual(t, n, len(message))
			return
		}
		// What was read is written, and read again as the same.
		written := c.Append(nil)
		first, second := &story{}, &story{}
		_, err = d.Decode(written, first)
		require.NoError(t, err)
		_, err = d.Decode(written, c)
		require.NoError(t, err)
		_, err = d.Decode(c.Append(nil), second)
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
}

func FuzzHandshake(f *testing.F) {
	for name := range captures {
		for _, m := range openCapture(f, name).Replies {
			f.Add(m.Data)
		}
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		h, err := DecodeHandshake(reply)
		if err != nil {
			require.ErrorAs(t, err, new(*Error))
			return
		}
		again, err := DecodeHandshake(h.Append(nil))
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}
