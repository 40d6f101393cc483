// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// readAlike reads a usual encoding at a place of a message in both ways, and reports its type.
func readAlike(tb testing.TB, message []byte, at int) (object, frame bool) {
	tb.Helper()
	if message[at]&^firstMapBits != firstMap {
		return false, false
	}
	usual, any := cursor{message: message, at: at}, cursor{message: message, at: at}
	var one, other Object
	if object = usual.usualDumped(&one); object {
		any.object(&other)
		same := one.ID == other.ID && sameText(one.Class, other.Class) && one.References.n == other.References.n &&
			sameText(one.References.raw, other.References.raw) && sameText(one.File, other.File) &&
			one.Line == other.Line && one.Size == other.Size && one.Sized == other.Sized
		if !same {
			require.Equal(tb, other, one, "byte %d", at)
		}
	}
	var f Frame
	if frame = usual.usualFrame(&f); frame {
		o := any.anyFrame()
		same := sameText(f.Method, o.Method) && sameText(f.Label, o.Label) && sameText(f.File, o.File) &&
			f.Line == o.Line && f.Singleton == o.Singleton && f.Thread == o.Thread
		if !same {
			require.Equal(tb, o, f, "byte %d", at)
		}
	}
	if any.err != nil || usual.err != nil || any.at != usual.at {
		require.Equal(tb, any, usual, "byte %d", at)
	}
	return object, frame
}

// sameText reports whether two texts are the same, of which nil is none.
func sameText(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// Any other encoding is several times as slow.
func TestTheUsualWayReadsAsAnyOther(t *testing.T) {
	var announced, framesAnnounced, objects, frames int
	eachMessage(t, func(_ string, message, _ []byte) {
		dialect, err := DialectOf(message)
		require.NoError(t, err)
		var r Reader
		require.NoError(t, r.Open(dialect, message))
		for r.Next() {
			switch e := r.Event(); e.Kind {
			case DumpedObject:
				announced++
			case CPUSample:
				framesAnnounced += e.Frames.Len()
			case AllocationSnapshot:
				for _, stack := range e.Snapshot.AllStacks() {
					framesAnnounced += stack.Len()
				}
			}
		}
		for at := range message {
			object, frame := readAlike(t, message, at)
			if object {
				objects++
			}
			if frame {
				frames++
			}
		}
	})
	require.Greater(t, 100*objects, 98*announced)
	require.Greater(t, 100*frames, 98*framesAnnounced)
}

func TestATruncatedValueIsNotUsual(t *testing.T) {
	whole := unhex(t, "86 03 ce 00 01 00 00 04 a1 41 05 92 ce 00 01 00 01 ce 00 01 00 02 06 d9 01 66 07 cc 80 08 cd 01 00 00 00")
	var o Object
	c := newCursor(whole)
	require.True(t, c.usualDumped(&o))
	require.Equal(t, len(whole)-2, c.at)
	require.Equal(t, Object{ID: 65536, Class: []byte("A"), References: o.References, File: []byte("f"), Line: 128, Size: 256, Sized: true}, o)
	frame := unhex(t, "86 0c a1 6d 0d da 00 01 6c 06 a1 66 07 05 0e 01 0f ce 00 01 00 00")
	var f Frame
	c = newCursor(frame)
	require.True(t, c.usualFrame(&f))
	require.Equal(t, Frame{Method: []byte("m"), Label: []byte("l"), File: []byte("f"), Line: 5, Singleton: true, Thread: 65536, Encoded: frame[1 : len(frame)-6]}, f)
	for n := range whole[:len(whole)-2] {
		c = newCursor(whole[:n:n])
		require.False(t, c.usualDumped(&o), n)
		require.Zero(t, c.at)
	}
	for n := range frame {
		c = newCursor(frame[:n:n])
		require.False(t, c.usualFrame(&f), n)
		require.Zero(t, c.at)
	}
}

func TestFramesWithOtherFieldsAreNotUsual(t *testing.T) {
	for name, text := range map[string]string{
		"fewer than usual":           "83 0c a1 6d 06 a1 66 07 05 0e 01",
		"a label and nothing more":   "84 0c a1 6d 0d a1 6c 06 a1 66 07 05 0e 01",
		"more than usual":            "87 0c a1 6d 0d a1 6c 06 a1 66 07 05 0e 01 0f 05 63 05",
		"a label and something else": "86 0c a1 6d 0d a1 6c 06 a1 66 07 05 0e 01 63 05",
		"a flag that is a number":    "84 0c a1 6d 06 a1 66 07 05 0e 02",
		"another order":              "84 06 a1 66 0c a1 6d 07 05 0e 01",
	} {
		var f Frame
		c := newCursor(unhex(t, text+"00 00 00 00"))
		require.False(t, c.usualFrame(&f), name)
		require.Zero(t, c.at, name)
	}
}
