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

// first is the label that counts for a value: that which was declared first, with any of
// its ranges, of those that have the value.
func first(ranges []labelled, value int) string {
	place, label := len(ranges), ""
	for _, r := range ranges {
		declared := slices.IndexFunc(ranges, func(other labelled) bool { return other.label == r.label })
		if r.low <= value && value <= r.high && declared < place {
			place, label = declared, r.label
		}
	}
	return label
}

// Where a value lies in ranges of several labels of an enumeration, the first label
// counts, as they are declared. All values of a byte are read, with few ranges and with many.
func TestAValueHasTheFirstLabelOfThoseWhoseRangesOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		signed bool
		least  int
		ranges []labelled
	}{
		"one inside of another, behind it":        {false, 0, []labelled{{10, 20, "around"}, {12, 14, "inside"}}},
		"one inside of another, before it":        {false, 0, []labelled{{12, 14, "inside"}, {10, 20, "around"}}},
		"that end where others begin":             {false, 0, []labelled{{10, 20, "a"}, {20, 30, "b"}, {30, 40, "c"}}},
		"of one label on both sides":              {false, 0, []labelled{{10, 20, "a"}, {15, 25, "b"}, {18, 30, "a"}}},
		"the same twice":                          {false, 0, []labelled{{10, 20, "a"}, {10, 20, "b"}}},
		"up to the largest":                       {false, 0, []labelled{{250, 255, "end"}, {0, 255, "all"}}},
		"below and above zero":                    {true, -128, []labelled{{-5, 5, "middle"}, {-128, 0, "below"}, {0, 127, "above"}}},
		"by chance, few":                          {false, 0, chance(1, 6, 0)},
		"by chance, so many that they are sought": {false, 0, chance(2, 60, 0)},
		"by chance, with sign":                    {true, -128, chance(3, 40, -128)},
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
				require.Equal(t, first(c.ranges, value), r.Event.Class.Fields.Members[0].Label(&r.Event.Values), "%d", value)
			}
		})
	}
}

// chance is n ranges of values of a byte.
func chance(seed uint64, n, least int) (ranges []labelled) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		low := random.IntN(256)
		high := low + random.IntN(min(256-low, 40))
		ranges = append(ranges, labelled{least + low, least + high, fmt.Sprintf("l%d", i)})
	}
	return ranges
}
