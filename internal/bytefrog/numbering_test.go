// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestASequenceNumberIsTheOneNearestToTheReference(t *testing.T) {
	const wrap = 1 << 32
	cases := map[string]struct {
		reference uint64
		n         uint32
		want      uint64
	}{
		"the first":                      {0, 0, 0},
		"behind":                         {134_150, 1, 1},
		"ahead":                          {10, 5_000_000, 5_000_000},
		"across the wrap":                {wrap - 5, 3, wrap + 3},
		"back across the wrap":           {wrap + 5, math.MaxUint32, wrap - 1},
		"just less than 2^31 ahead":      {wrap, 1<<31 - 1, wrap + 1<<31 - 1},
		"2^31 ahead is behind":           {wrap, 1 << 31, wrap - 1<<31},
		"2^31 behind is ahead":           {wrap + 1<<31 + 1, 0, 2 * wrap},
		"after many wraps, a bit behind": {7*wrap + 100, 90, 7*wrap + 90},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, Unwrap(c.reference, c.n))
		})
	}
	assert.Greater(t, Unwrap(3, math.MaxUint32), uint64(math.MaxInt64), "below 0")
}

func TestNextNeverGoesBack(t *testing.T) {
	var n Numbering
	n.Advance(10, 4)
	n.Advance(7, 3)
	assert.EqualValues(t, 10, n.next.Load())
	assert.EqualValues(t, 7, n.received.Load())
}
