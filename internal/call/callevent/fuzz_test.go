// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"math"
	"math/rand/v2"
	"runtime/metrics"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// checkUnpack unpacks data. After success it checks that every index is in its table and every
// string is UTF-8.
func checkUnpack(t testing.TB, data []byte) {
	t.Helper()
	var b Batch
	if err := b.Unpack(data); err != nil {
		require.ErrorAs(t, err, new(*LayoutError))
		return
	}
	require.LessOrEqual(t, b.Len()*eventSize, len(data))
	for _, c := range resolve(&b, 7) {
		require.LessOrEqual(t, c.sequence, uint64(MaxSequence))
		require.True(t, utf8.ValidString(c.lane.Name))
		require.True(t, utf8.ValidString(c.exception))
		if f := c.function; f != nil {
			require.True(t, utf8.ValidString(f.Qualified) && utf8.ValidString(f.Display) && utf8.ValidString(f.Text) && utf8.ValidString(f.File))
		}
	}
	for _, a := range b.Attributes {
		require.Less(t, int(a.Event), b.Len())
		require.Equal(t, ValueString, b.Values[a.Key].Type())
		require.True(t, utf8.ValidString(b.Values[a.Value].Str()))
	}
	for _, r := range b.Renames {
		require.LessOrEqual(t, r.After, uint64(MaxSequence))
		require.True(t, r.Time >= 0 && r.Time <= maxTime)
		require.True(t, utf8.ValidString(r.Name))
	}
	for _, barrier := range b.Barriers {
		require.LessOrEqual(t, barrier.From, barrier.To)
	}
}

// allocated returns the number of bytes that the process has allocated, except those in the
// allocator's caches.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// FuzzUnpack: for any data, nothing panics, an unpacked batch is usable, and memory is in
// proportion to the length of the data.
func FuzzUnpack(f *testing.F) {
	data, _ := sample(f)
	f.Add(data)
	f.Add(pack(f, testStream, MinBatchBytes, nil)[0])
	for seed := range uint64(4) {
		f.Add(pack(f, testStream, MinBatchBytes, randomCalls(rand.New(rand.NewPCG(seed, 2)), 40))[0])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// The largest entry for its bytes: 20 bytes become a Function of 72, and append allocates at
		// most twice that, beside the smaller slices before it.
		const perByte, fixed = 16, 256 << 10
		// Other goroutines allocate too, such as the fuzzer. The least of some tries is the memory of
		// unpacking.
		least := uint64(math.MaxUint64)
		for range 5 {
			before := allocated()
			_ = new(Batch).Unpack(data)
			if least = min(least, allocated()-before); least <= uint64(perByte*len(data)+fixed) {
				break
			}
		}
		if least > uint64(perByte*len(data)+fixed) {
			t.Fatalf("%d bytes allocated to unpack %d", least, len(data))
		}
		checkUnpack(t, data)
	})
}
