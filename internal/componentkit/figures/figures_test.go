// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package figures_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

func TestNumbersAreReadable(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 887366: "887,366", 1234567890: "1,234,567,890"} {
		assert.Equal(t, want, figures.Count(n))
	}
	for rate, want := range map[float64]string{0: "0", 9999: "9999", 12345: "12 k", 1270000: "1.27 M"} {
		assert.Equal(t, want, figures.Rate(rate))
	}
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 14438261: "13.8 MiB", 1 << 40: "1.0 TiB"} {
		assert.Equal(t, want, figures.Bytes(n))
	}
}
