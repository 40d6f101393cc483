// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPausesDoubleUntilTheLongestAndAreRandom(t *testing.T) {
	b := New(Config{InitialInterval: 100, MaxInterval: 300})
	for range 1000 {
		// The interval is 100, 200, and then always 300.
		for _, bounds := range [][2]time.Duration{{50, 149}, {100, 299}, {150, 300}, {150, 300}} {
			pause := b.Pause()
			assert.GreaterOrEqual(t, pause, bounds[0])
			assert.LessOrEqual(t, pause, bounds[1])
		}
		b.Reset()
	}
}

func TestPausesOfTwoBackoffsDiffer(t *testing.T) {
	config := Config{InitialInterval: time.Hour, MaxInterval: 2 * time.Hour}
	a, b := New(config), New(config)
	differ := 0
	for range 100 {
		if a.Pause() != b.Pause() {
			differ++
		}
		a.Reset()
		b.Reset()
	}
	assert.Greater(t, differ, 90)
}
