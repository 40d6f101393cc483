// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogguard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Where the collector takes nothing, more is read at once than one read brings: the agent's
// system doesn't notice less. It is forgotten slower than the collector takes.
func TestWhatIsReadWhereNothingIsTaken(t *testing.T) {
	l := &link{chunks: &chunks{}, wakeUp: func() {}, made: time.Now(), queue: chunkBytes, rise: 5 * chunkBytes}
	o := newOutlet(l)
	put := func() (chunksRead int) {
		for o.awaitRoom(time.Millisecond) {
			c := l.chunks.take(chunkBytes)
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
	o.took(8 * chunkBytes)
	assert.Equal(t, 7, put(), "all that was taken but an eighth")
}
