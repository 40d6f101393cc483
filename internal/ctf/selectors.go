// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"
	"math"
	"slices"

	"github.com/callbraid/callbraid/internal/ctf/metadata"
)

// variantTable returns which values of a variant's selector select which option, and
// whether the selector has a sign.
func (t *Trace) variantTable(f *Field, v *metadata.Variant) (selector, bool, error) {
	integer := f.source.Type.(*metadata.Integer)
	table := selector{otherwise: -1}
	if v.ByLabel {
		// The first label of a value counts.
		options := make(map[string]uint32, len(v.Options))
		for i, o := range v.Options {
			options[o.Name] = uint32(i)
		}
		for _, m := range integer.Mappings {
			if option, ok := options[m.Label]; ok {
				table.add(m.Ranges, option, integer.Signed)
			}
		}
	} else {
		for i, o := range v.Options {
			table.add(o.Ranges, uint32(i), integer.Signed)
		}
	}
	if len(table.spans) == 0 {
		return table, false, fmt.Errorf("expected a selector that selects an option, got one that selects none")
	}
	if err := t.work(len(table.spans) + len(integer.Mappings)); err != nil {
		return table, false, err
	}
	table.sort()
	return table, integer.Signed, nil
}

// optionalTable returns for which values of its selector an optional field is there.
func optionalTable(f *Field, o *metadata.Optional) (selector, bool) {
	integer := f.source.Type.(*metadata.Integer)
	table := selector{}
	if integer.Boolean {
		table.spans = []span{{low: 1, high: math.MaxUint64}}
	} else {
		table.add(o.Ranges, 0, integer.Signed)
	}
	table.sort()
	return table, integer.Signed
}

// add adds the ranges as far as an integer of 64 bits can have their values.
func (s *selector) add(ranges []metadata.Range, option uint32, signed bool) {
	least, most := metadata.Unsigned(0), metadata.Unsigned(math.MaxUint64)
	if signed {
		least, most = metadata.Signed(math.MinInt64), metadata.Signed(math.MaxInt64)
	}
	for _, r := range ranges {
		if r.High.Compare(least) < 0 || r.Low.Compare(most) > 0 {
			continue
		}
		low, high := r.Low, r.High
		if low.Compare(least) < 0 {
			low = least
		}
		if high.Compare(most) > 0 {
			high = most
		}
		s.spans = append(s.spans, span{low: comparable64(low, signed), high: comparable64(high, signed), option: option})
	}
}

// comparable64 is the value as spans have it.
func comparable64(n metadata.Number, signed bool) uint64 {
	value := n.Magnitude
	if n.Negative {
		value = -value
	}
	if signed {
		value ^= 1 << 63
	}
	return value
}

// sort puts the spans in order, unless values belong to several of them.
func (s *selector) sort() {
	sorted := slices.Clone(s.spans)
	slices.SortFunc(sorted, func(a, b span) int {
		switch {
		case a.low < b.low:
			return -1
		case a.low > b.low:
			return 1
		}
		return 0
	})
	for i := 1; i < len(sorted); i++ {
		if sorted[i].low <= sorted[i-1].high {
			return
		}
	}
	s.spans, s.sorted = sorted, true
}
