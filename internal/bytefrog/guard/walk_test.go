// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
)

func someNames() *names {
	return newNames(mib, func() uint64 { return 0 }, func() {})
}

// everything returns each message of a data connection once, numbered from a number on.
func everything(from, at uint32) []byte {
	var b []byte
	for i, kind := range []bytefrog.MessageType{bytefrog.TypeMethodEntry, bytefrog.TypeMethodExit, bytefrog.TypeException, bytefrog.TypeExceptionBubble} {
		b = bytefrog.AppendEvent(b, bytefrog.Event{Type: kind, Sequence: from + uint32(i), Time: at, Method: 7, Thread: 3})
	}
	b = bytefrog.Marker{Sequence: from + 4, Time: at, Key: "key", Value: "value"}.AppendTo(b)
	b = bytefrog.MapThreadName{Thread: 3, Time: at, Name: "main"}.AppendTo(b)
	b = bytefrog.MapMethod{Method: 7, Signature: "demo/M.m;1;()V"}.AppendTo(b)
	return bytefrog.MapException{Exception: 1, Name: "java.lang.Error"}.AppendTo(b)
}

const inEverything = 5 // that have a number

func TestOnlyWholeMessagesAreWalkedOver(t *testing.T) {
	b := everything(0, 1)
	ends := map[int]int{0: 0}
	for at := 0; at < len(b); {
		n, err := bytefrog.DataSize(b[at:], bytefrog.MaxString)
		require.NoError(t, err)
		at += n
		ends[at] = at
	}
	last := 0
	for n := range len(b) + 1 {
		if end, ok := ends[n]; ok {
			last = end
		}
		w, err := walk(b[:n], 0, someNames())
		require.NoError(t, err)
		assert.Equal(t, last, w.taken, "of %d bytes", n)
		later := append([]byte(nil), b[:n]...)
		w, err = walkTranslated(later, 0, someNames(), translation{needed: true})
		require.NoError(t, err)
		assert.Equal(t, last, w.taken, "of %d bytes", n)
		assert.Equal(t, last, w.kept)
	}
}

func TestALaterRunIsNumberedAndTimedFromItsBegin(t *testing.T) {
	for name, c := range map[string]struct {
		since    uint64
		ticks    uint64
		from, at uint32
	}{
		"immediately":            {since: 100, ticks: 50, from: 100, at: 50},
		"numbers wrap":           {since: math.MaxUint32 - 1, ticks: 50, from: math.MaxUint32 - 1, at: 60},
		"numbers have wrapped":   {since: math.MaxUint32 - 10, ticks: 50, from: 5, at: 60},
		"times wrap":             {since: 100, ticks: math.MaxUint32 - 5, from: 101, at: 7},
		"times before its begin": {since: 100, ticks: 50, from: 102, at: 48},
	} {
		t.Run(name, func(t *testing.T) {
			b := everything(c.from, c.at)
			w, err := walkTranslated(b, c.since, someNames(), translation{since: c.since, ticks: c.ticks, needed: true})
			require.NoError(t, err)
			assert.Equal(t, len(b), w.kept)
			assert.Equal(t, inEverything, w.events)
			assert.Zero(t, w.dropped)
			assert.Equal(t, everything(c.from-uint32(c.since), c.at-uint32(c.ticks)), b)
			assert.Equal(t, uint64(c.from-uint32(c.since))+c.since+inEverything, w.next)
		})
	}
}

// The next number is one more than the highest, for any order of arrival and on both sides of the agent's 2^32.
func TestTheNextNumberFollowsTheHighest(t *testing.T) {
	const wrap = 1 << 32
	for name, c := range map[string]struct {
		before  uint64
		numbers []uint64
		want    uint64
	}{
		"in order":                 {before: 100, numbers: []uint64{100, 101, 102, 103, 104}, want: 105},
		"none is new":              {before: 100, numbers: []uint64{97, 98, 99, 3}, want: 100},
		"the highest is the first": {before: 100, numbers: []uint64{140, 100, 120}, want: 141},
		"the agent's wrap":         {before: wrap - 2, numbers: []uint64{wrap - 2, wrap - 1, wrap, wrap + 1}, want: wrap + 2},
		"one from before the wrap": {before: wrap - 1, numbers: []uint64{wrap + 3, wrap - 1, wrap}, want: wrap + 4},
		"the second wrap":          {before: 2*wrap - 1, numbers: []uint64{2*wrap + 5, 2*wrap - 7}, want: 2*wrap + 6},
	} {
		t.Run(name, func(t *testing.T) {
			var b []byte
			for _, n := range c.numbers {
				b = bytefrog.AppendEvent(b, bytefrog.Event{Type: bytefrog.TypeMethodEntry, Sequence: uint32(n), Method: 7, Thread: 3})
			}
			// With more bytes behind them the fast loop reads all. Alone, the last ones are read one by one.
			for _, behind := range [][]byte{nil, bytefrog.MapMethod{Method: 7, Signature: "demo/Shop.buy;1;()V"}.AppendTo(nil)} {
				b := append(b, behind...)
				w, err := walk(b, c.before, someNames())
				require.NoError(t, err)
				assert.Equal(t, c.want, w.next)
				w, err = walkTranslated(append([]byte(nil), b...), c.before, someNames(), translation{needed: true})
				require.NoError(t, err)
				assert.Equal(t, c.want, w.next, "in a later run")
			}
		})
	}
}

func TestAnErrorOfTheAgentIsNoticedInEveryRun(t *testing.T) {
	b := append(everything(0, 1), bytefrog.ErrorMessage{Text: "out of buffers"}.AppendTo(nil)...)
	w, err := walk(b, 0, someNames())
	require.NoError(t, err)
	assert.True(t, w.reported)
	w, err = walkTranslated(b, 0, someNames(), translation{needed: true})
	require.NoError(t, err)
	assert.True(t, w.reported)
}

func TestMessagesFromBeforeARunAreRemoved(t *testing.T) {
	n := someNames()
	b := append(everything(95, 1), everything(100, 1)...)
	b = append(b, everything(90, 1)...)
	b = append(b, byte(bytefrog.TypeMethodEntry)) // and the begin of another
	w, err := walkTranslated(b, 100, n, translation{since: 100, needed: true})
	require.NoError(t, err)
	assert.Equal(t, len(b)-1, w.taken)
	assert.Equal(t, 3*inEverything, w.events)
	assert.Equal(t, 2*inEverything, w.dropped)
	names := everything(0, 1)[len(everything(0, 1))-namesIn(everything(0, 1)):]
	want := append(append(append([]byte(nil), names...), everything(0, 1)...), names...)
	assert.Equal(t, want, b[:w.kept])
	assert.EqualValues(t, 105, w.next)
}

// namesIn returns the memory of names after everything.
func namesIn(b []byte) int {
	at := 0
	for range inEverything {
		n, _ := bytefrog.DataSize(b[at:], bytefrog.MaxString)
		at += n
	}
	return len(b) - at
}

func TestACaptureIsWalkedAsItIsDecoded(t *testing.T) {
	recorded, err := capture.Open("../../../testdata/bytefrog/shop.zip")
	require.NoError(t, err)
	events, next := 0, uint64(0)
	for _, data := range recorded.Data {
		w, err := walk(data[2:], 0, someNames())
		require.NoError(t, err)
		assert.Equal(t, len(data)-2, w.taken)
		events += w.events
		next = max(next, w.next)
	}
	assert.Equal(t, 9_628, events)
	assert.EqualValues(t, 9_628, next)
}

func TestBytesThatAreNoMessageAreAnErrorBehindWholeMessages(t *testing.T) {
	whole := everything(0, 1)
	b := append(append([]byte(nil), whole...), 200, 1, 2, 3)
	w, err := walk(b, 0, someNames())
	var protocol *bytefrog.ProtocolError
	require.ErrorAs(t, err, &protocol)
	assert.Equal(t, len(whole), w.taken)
	w, err = walkTranslated(b, 0, someNames(), translation{needed: true})
	require.ErrorAs(t, err, &protocol)
	assert.Equal(t, len(whole), w.taken)
}

func FuzzWalk(f *testing.F) {
	f.Add(everything(5, 1), uint64(3))
	f.Add(everything(math.MaxUint32-2, 1), uint64(1)<<32)
	f.Fuzz(func(t *testing.T, b []byte, since uint64) {
		since %= 1 << 40
		w, err := walk(b, since, someNames())
		later := append([]byte(nil), b...)
		v, laterErr := walkTranslated(later, since, someNames(), translation{since: since, needed: true})
		if w.taken != v.taken || w.events != v.events || (err == nil) != (laterErr == nil) {
			t.Fatalf("%+v (%v) and %+v (%v)", w, err, v, laterErr)
		}
		if v.kept > v.taken || v.taken > len(b) {
			t.Fatalf("%+v of %d bytes", v, len(b))
		}
		again, err := walk(later[:v.kept], 0, someNames())
		if err != nil || again.taken != v.kept || again.events != v.events-v.dropped {
			t.Fatalf("the kept bytes are not whole: %+v (%v) of %+v", again, err, v)
		}
	})
}
