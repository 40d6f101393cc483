// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
)

var captures = []string{"shop", "suspend", "startsuspended", "maven"}

func openCapture(tb testing.TB, name string) *capture.Capture {
	tb.Helper()
	c, err := capture.Open("../../testdata/bytefrog/" + name + ".zip")
	require.NoError(tb, err)
	return c
}

// signatures returns the text of every map method signature in the capture.
func signatures(tb testing.TB, name string) []string {
	var texts []string
	for _, data := range openCapture(tb, name).Data {
		for _, m := range decodeStream(tb, data[dataHelloSize:], DecodeData, wholly).messages {
			if m, ok := m.(MapMethod); ok {
				texts = append(texts, m.Signature)
			}
		}
	}
	require.NotEmpty(tb, texts)
	return texts
}

// stream has the bytes of a connection.
type stream struct {
	events   []Event
	messages []Message
	again    []byte // the whole connection, encoded again
}

// chunking returns the number of remaining bytes that the next read has.
type chunking func(remaining int) int

func wholly(remaining int) int { return remaining }

func byteByByte(int) int { return 1 }

func atRandom(rng *rand.Rand, most int) chunking {
	return func(remaining int) int { return min(1+rng.IntN(most), remaining) }
}

// decodeStream decodes a connection that arrives in chunks, like a receiver: the rest of one read precedes the next.
func decodeStream(tb testing.TB, b []byte, decode decoder, next chunking) stream {
	tb.Helper()
	var s stream
	dst := make([]Event, 100)
	begin, end := 0, 0
	for end < len(b) {
		end += next(len(b) - end)
		for begin < end {
			n, consumed := DecodeEvents(dst, b[begin:end])
			s.events = append(s.events, dst[:n]...)
			for _, e := range dst[:n] {
				s.again = AppendEvent(s.again, e)
			}
			begin += consumed
			if n > 0 {
				continue
			}
			m, size, err := decode(b[begin:end], MaxString)
			require.NoError(tb, err, "byte %d", begin)
			if size == 0 {
				break
			}
			s.messages = append(s.messages, m)
			s.again = m.AppendTo(s.again)
			begin += size
		}
	}
	require.Equal(tb, len(b), begin, "bytes decoded")
	return s
}

// counts are the numbers of messages of each type in a capture.
type counts map[MessageType]int

func (c counts) add(s stream) {
	for _, e := range s.events {
		c[e.Type]++
	}
	for _, m := range s.messages {
		c[m.Type()]++
	}
}

var captureCounts = map[string]counts{
	"shop": {
		TypeHello: 1, TypeHeartbeat: 2, TypeClassTransformed: 3, TypeClassIgnored: 37,
		TypeDataHello: 2, TypeMapThreadName: 7, TypeMapMethod: 12, TypeMapException: 1,
		TypeMethodEntry: 4793, TypeMethodExit: 4730, TypeException: 42, TypeExceptionBubble: 63,
	},
	"suspend": {
		TypeHello: 1, TypeHeartbeat: 6, TypeDataBreak: 2, TypeClassTransformed: 2, TypeClassIgnored: 31,
		TypeDataHello: 2, TypeMapThreadName: 4, TypeMapMethod: 9, TypeMapException: 1,
		TypeMethodEntry: 23854, TypeMethodExit: 23692, TypeException: 162, TypeExceptionBubble: 162,
	},
	"startsuspended": {
		TypeHello: 1, TypeHeartbeat: 4, TypeClassTransformed: 2, TypeClassIgnored: 31,
		TypeDataHello: 2, TypeMapThreadName: 3, TypeMapMethod: 9, TypeMapException: 1,
		TypeMethodEntry: 14605, TypeMethodExit: 14505, TypeException: 100, TypeExceptionBubble: 100,
	},
	"maven": {
		TypeHello: 1, TypeHeartbeat: 7, TypeClassTransformed: 878, TypeClassIgnored: 1484, TypeClassTransformFailed: 3,
		TypeDataHello: 3, TypeMapThreadName: 1, TypeMapMethod: 1863, TypeMapException: 3,
		TypeMethodEntry: 442770, TypeMethodExit: 440929, TypeException: 1827, TypeExceptionBubble: 1840,
	},
}

// captureEvents are the counts in the description of the captures: call events, calls that ended, and exits without an
// entry, which are not counted as calls.
var captureEvents = map[string]struct{ events, calls, orphans int }{
	"shop":           {events: 9_628, calls: 4_793},
	"suspend":        {events: 47_870, calls: 23_844, orphans: 10},
	"startsuspended": {events: 29_310, calls: 14_605},
	"maven":          {events: 887_366, calls: 442_769},
}

// decodeCapture decodes every connection of c and checks that encoding the result has the same bytes.
func decodeCapture(tb testing.TB, c *capture.Capture, next chunking) (counts, []stream) {
	tb.Helper()
	total := counts{}
	var streams []stream
	for i, b := range append([][]byte{c.Control}, c.Data...) {
		first, n, err := DecodeFirst(b, MaxString)
		require.NoError(tb, err)
		require.Equal(tb, helloSize, n)
		total[first.Type()]++
		decode := DecodeData
		if i == 0 {
			require.Equal(tb, Hello{Version: 1}, first)
			decode = DecodeControl
		}
		s := decodeStream(tb, b[n:], decode, next)
		require.Equal(tb, b[n:], s.again, "connection %d encoded again", i)
		total.add(s)
		streams = append(streams, s)
	}
	return total, streams
}

func TestCapturesAreDecodedCompletely(t *testing.T) {
	for _, name := range captures {
		t.Run(name, func(t *testing.T) {
			c := openCapture(t, name)
			got, streams := decodeCapture(t, c, wholly)
			assert.Equal(t, captureCounts[name], got)

			want := captureEvents[name]
			assert.Equal(t, want.events, got[TypeMethodEntry]+got[TypeMethodExit]+got[TypeException]+got[TypeExceptionBubble])
			assert.Equal(t, want.calls+want.orphans, got[TypeMethodExit]+got[TypeExceptionBubble])

			// Sequence numbers are complete from 0 on.
			seen := make([]bool, want.events)
			for _, s := range streams {
				for _, e := range s.events {
					require.Less(t, int(e.Sequence), len(seen))
					require.False(t, seen[e.Sequence], "sequence %d twice", e.Sequence)
					seen[e.Sequence] = true
				}
			}
		})
	}
}

func TestCapturesHaveTheTracedMethods(t *testing.T) {
	_, streams := decodeCapture(t, openCapture(t, "suspend"), wholly)
	var breaks []uint32
	var modes []Mode
	for _, m := range streams[0].messages {
		switch m := m.(type) {
		case DataBreak:
			breaks = append(breaks, m.Sequence)
		case Heartbeat:
			modes = append(modes, m.Mode)
		}
	}
	assert.Equal(t, []uint32{13322, 28180}, breaks)
	assert.Equal(t, []Mode{'I', 'S', 'T', 'T', 'T', 'X'}, modes)

	_, streams = decodeCapture(t, openCapture(t, "shop"), wholly)
	names := map[string]bool{}
	exceptions := map[string]bool{}
	for _, s := range streams {
		for _, m := range s.messages {
			switch m := m.(type) {
			case MapThreadName:
				names[fmt.Sprint(m.Thread, " ", m.Name)] = true
			case MapException:
				exceptions[m.Name] = true
			}
		}
	}
	assert.Equal(t, map[string]bool{
		"0 main": true, "1 worker-1": true, "2 worker-0": true, "3 worker-2": true,
		"1 worker-1-draining": true, "2 worker-0-draining": true, "3 worker-2-draining": true,
	}, names)
	assert.Equal(t, map[string]bool{"java.lang.IllegalStateException": true}, exceptions)
}

// Byte by byte, the decoder sees every beginning of each message.
func TestShopByteByByteHasTheSameResult(t *testing.T) {
	c := openCapture(t, "shop")
	_, whole := decodeCapture(t, c, wholly)
	got, chunked := decodeCapture(t, c, byteByByte)
	assert.Equal(t, captureCounts["shop"], got)
	assert.Equal(t, whole, chunked)
}

func TestCapturesInRandomChunksHaveTheSameResult(t *testing.T) {
	for _, name := range captures {
		for _, most := range []int{30, 9_000} {
			t.Run(fmt.Sprintf("%s in chunks of at most %d bytes", name, most), func(t *testing.T) {
				const seed = 1
				got, _ := decodeCapture(t, openCapture(t, name), atRandom(rand.New(rand.NewPCG(seed, uint64(most))), most))
				assert.Equal(t, captureCounts[name], got)
			})
		}
	}
}
