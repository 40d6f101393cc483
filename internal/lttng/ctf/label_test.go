// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// labelled is a range of an enumeration, in its order.
type labelled struct {
	low, high int
	label     string
}

// firstLabel returns the expected label of a value: the first declared label that has a range with this value.
func firstLabel(ranges []labelled, value int) string {
	place, label := len(ranges), ""
	for _, r := range ranges {
		declared := slices.IndexFunc(ranges, func(other labelled) bool { return other.label == r.label })
		if r.low <= value && value <= r.high && declared < place {
			place, label = declared, r.label
		}
	}
	return label
}

// If ranges of several labels of an enumeration contain a value, the first declared label counts. The test reads all
// values of a byte, with few ranges and with many.
func TestTheFirstLabelCountsIfRangesOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		signed bool
		least  int
		ranges []labelled
	}{
		"one inside another, declared after it":     {false, 0, []labelled{{10, 20, "around"}, {12, 14, "inside"}}},
		"one inside another, declared before it":    {false, 0, []labelled{{12, 14, "inside"}, {10, 20, "around"}}},
		"adjacent ranges that share a value":        {false, 0, []labelled{{10, 20, "a"}, {20, 30, "b"}, {30, 40, "c"}}},
		"one label on both sides of another":        {false, 0, []labelled{{10, 20, "a"}, {15, 25, "b"}, {18, 30, "a"}}},
		"the same twice":                            {false, 0, []labelled{{10, 20, "a"}, {10, 20, "b"}}},
		"up to the largest value":                   {false, 0, []labelled{{250, 255, "end"}, {0, 255, "all"}}},
		"below and above zero":                      {true, -128, []labelled{{-5, 5, "middle"}, {-128, 0, "below"}, {0, 127, "above"}}},
		"random, few":                               {false, 0, randomRanges(1, 6, 0)},
		"random, so many that the search is binary": {false, 0, randomRanges(2, 60, 0)},
		"random, with sign":                         {true, -128, randomRanges(3, 40, -128)},
	} {
		t.Run(name, func(t *testing.T) {
			var declared []string
			for _, r := range c.ranges {
				declared = append(declared, fmt.Sprintf("%s = %d ... %d", r.label, r.low, r.high))
			}
			trace := newTrace(t, fmt.Sprintf(`/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
stream { id = 0; };
event { name = x; fields := struct { enum : integer { size = 8; signed = %t; } { %s } f; }; };
`, c.signed, strings.Join(declared, ", ")))
			var packet []byte
			for value := c.least; value < c.least+256; value++ {
				packet = append(packet, byte(value))
			}
			r := ctf.NewReader(trace)
			require.NoError(t, r.Begin(packet))
			for value := c.least; value < c.least+256; value++ {
				require.True(t, r.Next(), r.Err())
				require.Equal(t, firstLabel(c.ranges, value), r.Event.Class.Fields.Members[0].Label(&r.Event.Values), "%d", value)
			}
		})
	}
}

// randomRanges returns n ranges of values of a byte.
func randomRanges(seed uint64, n, least int) (ranges []labelled) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		low := random.IntN(256)
		high := low + random.IntN(min(256-low, 40))
		ranges = append(ranges, labelled{least + low, least + high, fmt.Sprintf("l%d", i)})
	}
	return ranges
}
