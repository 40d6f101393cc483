// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// clockOf returns a clock with these attributes.
func clockOf(t *testing.T, attributes string) *ctf.Clock {
	t.Helper()
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append(fmt.Appendf(nil, `/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; %s };
stream { event.header := struct { integer { size = 64; map = clock.c.value; } timestamp; }; };
`, attributes)))
	return trace.StreamClasses()[0].Clock
}

func TestCyclesAreTheLastValueAtOrBeforeATime(t *testing.T) {
	for attributes, values := range map[string][]uint64{
		"freq = 1000000000; offset = 1700000000000000000;": {0, 1, 1e9, 1e15},
		"freq = 1000; offset_s = 1700000000;":              {0, 1, 1000, 1e12},
		"freq = 3000000000; offset_s = 1700000000;":        {0, 3, 3e9, 3e15},
		"freq = 1; offset_s = 1700000000; offset = 1;":     {0, 1, 1e9},
	} {
		c := clockOf(t, attributes)
		for _, value := range values {
			assert.Equal(t, value, cycles(c, c.UnixNano(value)), "%s: value %d", attributes, value)
		}
		assert.Zero(t, cycles(c, c.UnixNano(0)-1))
		assert.Zero(t, cycles(c, 0))
	}
	assert.Zero(t, cycles(clockOf(t, "freq = 18446744073709551615;"), math.MaxInt64), "beyond all values")
}
