// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Users rely on IDs: a call stream that another version pairs has the same ones. A change here is a
// change for users.
func TestIDsAreTheSameInEveryVersion(t *testing.T) {
	id := newIdentity(callevent.StreamID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	for _, test := range []struct {
		sequence    uint64
		span, trace string
	}{
		{0, "92516967df001789", "91e2d384e8ec789d874d73fad097b955"},
		{1, "08d77bd88d86aa41", "4b8c7cb593cc11e09db1bc4db4cee8a0"},
		{callevent.MaxSequence, "b1512d27218489a8", "19c605ba9abe2483ab3d352854b6f850"},
	} {
		assert.Equal(t, test.span, id.SpanID(test.sequence).String())
		assert.Equal(t, test.trace, id.TraceID(test.sequence).String())
	}
}

// unhash returns the number whose hash with a key is h. Every step of the hash can be reversed.
func unhash(k key, h uint64) uint64 {
	unshift := func(x uint64, by uint) uint64 {
		y := x
		for s := by; s < 64; s += by {
			y = x ^ y>>by
		}
		return y
	}
	inverse := func(x uint64) uint64 {
		y := x
		for range 6 {
			y *= 2 - x*y
		}
		return y
	}
	n := unshift(h^k.after, 31)
	n = unshift(n*inverse(0x94d049bb133111eb), 27)
	n = unshift(n*inverse(0xbf58476d1ce4e5b9), 30)
	return n - k.before
}

func TestIDsAreNeverZero(t *testing.T) {
	id := newIdentity(streamID(1))
	n := unhash(id.span, 0)
	require.Zero(t, id.span.hash(n), "this number's hash is zero")
	assert.Equal(t, "0000000000000001", id.SpanID(n).String())

	n = unhash(id.traceLow, 0)
	require.Zero(t, id.traceLow.hash(n))
	trace := id.TraceID(n)
	assert.EqualValues(t, 1, binary.BigEndian.Uint64(trace[8:]))
}

// Within a stream the hash is a bijection. Between streams IDs are as different as random ones: 2
// million of 2^64 do not collide.
func TestStreamsNeverShareIDs(t *testing.T) {
	streams, sequences := 2_000, 1_000
	if testing.Short() {
		streams /= 20
	}
	spans := make(map[pcommon.SpanID]struct{}, streams*sequences)
	low := make(map[uint64]struct{}, streams*sequences)
	for stream := range streams {
		// The IDs differ in few bits, as those of a bad generator do.
		var of callevent.StreamID
		binary.BigEndian.PutUint32(of[:], uint32(stream+1))
		id := newIdentity(of)
		for sequence := range uint64(sequences) {
			spans[id.SpanID(sequence)] = struct{}{}
			trace := id.TraceID(sequence)
			low[binary.BigEndian.Uint64(trace[8:])] = struct{}{}
		}
	}
	assert.Len(t, spans, streams*sequences)
	assert.Len(t, low, streams*sequences)
}

// The lowest 56 bits of trace IDs are uniform, as consistent sampling needs them. In each bit half
// are ones, all 256 values of a byte are about as frequent, and a threshold keeps its share of
// traces. The traces are those of threads that return to the bottom: entries at every number, every
// other one, or some thousands apart. Inputs are fixed, so results are too.
func TestTheLowest56BitsOfTraceIDsAreUniform(t *testing.T) {
	const traces = 1 << 18
	for _, step := range []uint64{1, 2, 4_096, 20_000, 1 << 32} {
		id := newIdentity(streamID(7))
		var ones [56]int
		var values [7][256]int
		var below [10]int
		for i := range uint64(traces) {
			trace := id.TraceID(i * step)
			random := binary.BigEndian.Uint64(trace[8:]) << 8 >> 8
			for bit := range ones {
				ones[bit] += int(random >> bit & 1)
			}
			for i := range values {
				values[i][trace[9+i]]++
			}
			for i := range below {
				// Thresholds of 1/2, 1/4, … 1/1024.
				if bits.LeadingZeros64(random<<8) > i {
					below[i]++
				}
			}
		}
		for bit, n := range ones {
			assertNear(t, traces, 0.5, n, "step %d, bit %d", step, bit)
		}
		for i := range values {
			for value, n := range values[i] {
				assertNear(t, traces, 1.0/256, n, "step %d, byte %d, value %d", step, i, value)
			}
		}
		for i, n := range below {
			assertNear(t, traces, math.Pow(0.5, float64(i+1)), n, "step %d, threshold 2^-%d", step, i+1)
		}
	}
}

// assertNear checks that n of total have a property with probability p, within five standard
// deviations.
func assertNear(t *testing.T, of int, p float64, n int, what string, args ...any) {
	t.Helper()
	deviation := math.Sqrt(float64(of) * p * (1 - p))
	assert.InDelta(t, float64(of)*p, float64(n), 5*deviation, append([]any{what}, args...)...)
}

// A change of one bit of the number changes half of the bits of the ID.
func TestNeighboursDifferInHalfOfTheirBits(t *testing.T) {
	id := newIdentity(streamID(3))
	changed := 0
	const numbers = 4_096
	for n := range uint64(numbers) {
		for bit := range 64 {
			changed += bits.OnesCount64(id.span.hash(n) ^ id.span.hash(n^1<<bit))
		}
	}
	assert.InDelta(t, 32, float64(changed)/(numbers*64), 0.1)
}
