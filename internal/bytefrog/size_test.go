// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSizeOfAMessageEqualsItsDecodedSize(t *testing.T) {
	for _, m := range []Message{
		MapThreadName{Thread: 1, Time: 2, Name: "main"}, MapMethod{Method: 1, Signature: "a/B.c;1;()V"}, MapException{Exception: 1, Name: "x"},
		Marker{Time: 1, Sequence: 2, Key: "key", Value: "value"}, Marker{}, ErrorMessage{Text: "text"},
	} {
		b := m.AppendTo(nil)
		for n := range len(b) + 3 {
			part := append(append([]byte(nil), b...), 1, 2, 3)[:n]
			_, want, wantErr := DecodeData(part, MaxString)
			got, err := DataSize(part, MaxString)
			assert.Equal(t, want, got, "%d bytes of %v", n, m.Type())
			assert.Equal(t, wantErr, err)
		}
		_, want := DataSize(b, 0)
		_, _, err := DecodeData(b, 0)
		assert.Equal(t, err, want, "a too long string")
	}
	for _, kind := range []MessageType{TypeMethodEntry, TypeMethodExit, TypeException, TypeExceptionBubble} {
		b := AppendEvent(nil, Event{Type: kind})
		for n := range len(b) {
			got, err := DataSize(b[:n], MaxString)
			require.NoError(t, err)
			assert.Zero(t, got, "%d bytes of %v", n, kind)
		}
		got, err := DataSize(append(b, 1), MaxString)
		require.NoError(t, err)
		assert.Equal(t, len(b), got)
	}
	for _, wrong := range []byte{0, 9, 13, 19, 24, 30, 255} {
		_, err := DataSize([]byte{wrong}, MaxString)
		_, _, want := DecodeData([]byte{wrong}, MaxString)
		require.Error(t, want)
		assert.Equal(t, want, err)
	}
}
