// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHeldMessagesAreBounded(t *testing.T) {
	var m identification
	m.begin(false)
	const most = 10 * (100 + bytesOfHeld)
	assert.True(t, m.hold(make([]byte, 2*most), time.Time{}, most), "there is always room for one")
	assert.False(t, m.hold(nil, time.Time{}, most))
	m.begin(true)
	kept := 0
	for m.hold(make([]byte, 100), time.Time{}, most) {
		kept++
	}
	assert.Equal(t, 10, kept)
	all := m.end()
	assert.Len(t, all, 10)
	assert.True(t, m.hold(make([]byte, 100), time.Time{}, most))
	m.end()
	m.holdAll(all)
	assert.False(t, m.hold(nil, time.Time{}, most), "messages held before count")
	m.begin(true)
	kept = 0
	for m.hold(nil, time.Time{}, most) {
		kept++
	}
	assert.Equal(t, most/bytesOfHeld, kept, "also messages without bytes")
}
