// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// If the collector reads nothing, the guard reads more than one chunk, because the agent's system does not notice less.
// The room shrinks slower than the collector reads.
func TestTheRoomWhileTheCollectorReadsNothing(t *testing.T) {
	f := &flow{chunks: &chunks{}, wakeUp: func() {}, made: time.Now(), queue: chunkBytes, rise: 5 * chunkBytes}
	o := newOutlet(f, true, nil)
	always := newAllowance(time.Second)
	put := func() (chunksRead int) {
		for o.awaitRoom(time.Millisecond, &always) {
			c := f.chunks.get(chunkBytes)
			c.end = chunkBytes
			o.put(c)
			chunksRead++
		}
		return chunksRead
	}
	assert.Equal(t, 2, put(), "the queue, and the read that finds it full")
	o.rise()
	assert.Equal(t, 6, put())
	o.rise()
	assert.Equal(t, 6, put())
	o.noteRead(8 * chunkBytes)
	assert.Equal(t, 8/recession, put(), "half of the data that the collector read")
	o.noteRead(10 * chunkBytes)
	assert.Equal(t, 2, put(), "only the queue after the collector has read all data")
}

// A wait uses up the allowance of the second.
func TestWaitingUsesUpTheAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flow{chunks: &chunks{}, wakeUp: func() {}, made: time.Now(), queue: chunkBytes, rise: chunkBytes}
		o := newOutlet(f, true, nil)
		for range 2 {
			c := f.chunks.get(chunkBytes)
			c.end = chunkBytes
			o.put(c)
		}
		allowed := newAllowance(100 * time.Millisecond)
		waits := func() time.Duration {
			began := time.Now()
			assert.False(t, o.awaitRoom(time.Hour, &allowed))
			return time.Since(began)
		}
		assert.Equal(t, 100*time.Millisecond, waits())
		assert.Less(t, waits(), 20*time.Millisecond, "the allowance for the time of the wait")
		time.Sleep(500 * time.Millisecond)
		assert.InDelta(t, 50*time.Millisecond, waits(), float64(10*time.Millisecond))
	})
}

// Waiting data uses little more memory than its bytes, for any sizes of its pieces.
func TestChunksThatWaitAreFull(t *testing.T) {
	for _, size := range []int{1, chunkBytes/2 + 1, chunkBytes - 1, chunkBytes} {
		f := &flow{chunks: &chunks{}, wakeUp: func() {}, made: time.Now()}
		o := newOutlet(f, true, nil)
		var want, got []byte
		c := f.chunks.get(chunkBytes)
		for i := range 100 {
			c.end = size
			for j := range c.bytes() {
				c.buf[j] = byte(i + j)
			}
			want = append(want, c.bytes()...)
			c = o.put(c)
			assert.Zero(t, len(c.bytes()))
		}
		held := 0
		for _, c := range o.queue {
			got = append(got, c.bytes()...)
			held += len(c.buf)
		}
		assert.EqualValues(t, len(want), f.waiting.Load())
		assert.LessOrEqual(t, held, len(want)+3*chunkBytes, "pieces of %d bytes", size)
		assert.True(t, bytes.Equal(want, got), "pieces of %d bytes", size)
	}
}
