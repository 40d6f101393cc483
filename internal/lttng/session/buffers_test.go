// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBuffersThatWaitAreBoundedInBytes(t *testing.T) {
	var b buffers
	large := make([]byte, maxFreeBytes/4)
	for range 6 {
		b.release(large)
	}
	assert.Len(t, b.free, 4)
	assert.Equal(t, maxFreeBytes, b.bytes)
	for range 4 {
		assert.Len(t, b.smallest(1), len(large))
	}
	assert.Nil(t, b.smallest(1))
	assert.Zero(t, b.bytes)
}

func TestASmallPacketUsesNoLargeBuffer(t *testing.T) {
	var b buffers
	for _, n := range []int{5000, 100, 9000, 300} {
		b.release(make([]byte, n))
	}
	assert.Len(t, b.smallest(200), 300)
	assert.Len(t, b.smallest(200), 5000)
	assert.Nil(t, b.smallest(9001))
	assert.Len(t, b.smallest(9000), 9000)
	assert.Equal(t, 100, b.bytes)
}
