// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
)

func TestAnAgentIsLostOnlyWhenNothingLiesUnread(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	p := pulse{silence: 10 * time.Second, heard: start}
	until, lost := p.check(0, at(4*time.Second))
	assert.Equal(t, at(10*time.Second), until)
	assert.False(t, lost)
	until, lost = p.check(1, at(5*time.Second))
	assert.Equal(t, at(15*time.Second), until)
	assert.False(t, lost)
	// The collector stood still: the connection is read once more.
	until, lost = p.check(1, at(time.Hour))
	assert.Equal(t, at(time.Hour+connreader.LastLook), until)
	assert.False(t, lost)
	until, lost = p.check(2, at(time.Hour+time.Millisecond))
	assert.Equal(t, at(time.Hour+time.Millisecond+10*time.Second), until)
	assert.False(t, lost)
	// And again, with nothing to read.
	_, lost = p.check(2, at(2*time.Hour))
	assert.False(t, lost)
	_, lost = p.check(2, at(2*time.Hour+connreader.LastLook))
	assert.True(t, lost)
}
