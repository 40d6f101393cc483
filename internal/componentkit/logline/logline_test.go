// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheFirstEventHasALineAndThenOneInEachPause(t *testing.T) {
	var s Seldom
	now := time.Now()
	since, due := s.Count(now)
	assert.True(t, due)
	assert.Equal(t, 1, since)
	for range 100 {
		_, due = s.Count(now.Add(Pause - 1))
		assert.False(t, due)
	}
	since, due = s.Count(now.Add(Pause))
	assert.True(t, due)
	assert.Equal(t, 101, since)
}

func TestMostBoundsTheLinesInEachPause(t *testing.T) {
	s := Seldom{Most: 3}
	now := time.Now()
	for _, expected := range []int{1, 98} {
		said := 0
		for range 100 {
			if since, due := s.Count(now); due {
				said++
				assert.Equal(t, expected, since)
				expected = 1
			}
		}
		assert.Equal(t, 3, said)
		now = now.Add(Pause)
	}
}

func TestABurstHasOneLine(t *testing.T) {
	var b Burst
	assert.False(t, b.Over(), "no burst")
	now := time.Now()
	since, due := b.Count(now)
	assert.True(t, due)
	assert.Equal(t, 1, since)
	_, due = b.Count(now.Add(2 * Pause))
	assert.False(t, due, "the burst continues")
	assert.True(t, b.Over())
	assert.False(t, b.Over())
	since, due = b.Count(now.Add(3 * Pause))
	assert.True(t, due)
	assert.Equal(t, 2, since, "events without a line are counted")
}

func TestOneOfManyCloseBurstsHasALine(t *testing.T) {
	var b Burst
	now, lines, overs := time.Now(), 0, 0
	for range 100 {
		for range 2 {
			if _, due := b.Count(now); due {
				lines++
			}
		}
		if b.Over() {
			overs++
		}
		now = now.Add(10 * time.Millisecond)
	}
	assert.Equal(t, 1, lines)
	assert.Equal(t, 1, overs, "a burst without a line has no line at its end")

	// A burst that continues has one line, after the pause.
	_, due := b.Count(now)
	assert.False(t, due)
	since, due := b.Count(now.Add(Pause))
	assert.True(t, due)
	assert.Equal(t, 2*100-1+2, since)
	_, due = b.Count(now.Add(2 * Pause))
	assert.False(t, due)
	assert.True(t, b.Over())
}
