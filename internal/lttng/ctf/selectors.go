// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// variantTable returns the selector of a variant, and whether its values have a sign.
func (t *Trace) variantTable(f *Field, v *metadata.Variant) (selector, bool, error) {
	integer := f.source.Type.(*metadata.Integer)
	table := selector{otherwise: -1}
	if v.ByLabel {
		// If a value has several labels, the first one counts.
		options := make(map[string]uint32, len(v.Options))
		for i, o := range v.Options {
			options[o.Name] = uint32(i)
		}
		for _, m := range integer.Mappings {
			if option, ok := options[m.Label]; ok {
				table.addRanges(m.Ranges, option, integer.Signed)
			}
		}
	} else {
		for i, o := range v.Options {
			table.addRanges(o.Ranges, uint32(i), integer.Signed)
		}
	}
	if len(table.spans) == 0 {
		return table, false, fmt.Errorf("expected a selector that selects an option, got one that selects none")
	}
	if err := t.countWork(len(table.spans) + len(integer.Mappings)); err != nil {
		return table, false, err
	}
	table.sort()
	return table, integer.Signed, nil
}

// optionalTable returns the selector of an optional field, and whether its values have a sign.
func optionalTable(f *Field, o *metadata.Optional) (selector, bool) {
	integer := f.source.Type.(*metadata.Integer)
	table := selector{}
	if integer.Boolean {
		table.spans = []span{{low: 1, high: math.MaxUint64}}
	} else {
		table.addRanges(o.Ranges, 0, integer.Signed)
	}
	table.sort()
	return table, integer.Signed
}

// addRanges adds the ranges, limited to values of 64 bits.
func (s *selector) addRanges(ranges []metadata.Range, option uint32, signed bool) {
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

// comparable64 returns the value in the form of spans.
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

// sort puts the spans in order and makes them disjoint. If several spans contain a value, the first declared one
// counts.
//
//  1. Collect the values at which a span begins or has ended. The result changes only there.
//  2. From one such value to the next, the first declared span among those that contain the values counts. A heap
//     holds the spans by their order of declaration.
func (s *selector) sort() {
	if len(s.spans) < 2 {
		return
	}
	declared := s.spans
	byLow := make([]int, len(declared))
	places := make([]uint64, 0, 2*len(declared))
	for i, d := range declared {
		byLow[i] = i
		places = append(places, d.low)
		if d.high < math.MaxUint64 {
			places = append(places, d.high+1)
		}
	}
	slices.SortFunc(byLow, func(a, b int) int { return cmp.Compare(declared[a].low, declared[b].low) })
	slices.Sort(places)
	places = slices.Compact(places)
	s.spans = make([]span, 0, len(declared))
	var reach firsts
	last := -1 // the declared span of the last resulting span
	for i, low := range places {
		high := uint64(math.MaxUint64)
		if i+1 < len(places) {
			high = places[i+1] - 1
		}
		for len(byLow) > 0 && declared[byLow[0]].low == low {
			heap.Push(&reach, byLow[0])
			byLow = byLow[1:]
		}
		for len(reach) > 0 && declared[reach[0]].high < low {
			heap.Pop(&reach)
		}
		switch {
		case len(reach) == 0:
			last = -1
		case reach[0] == last:
			s.spans[len(s.spans)-1].high = high
		default:
			last = reach[0]
			s.spans = append(s.spans, span{low: low, high: high, option: declared[last].option})
		}
	}
}

// firsts is a heap of indexes, with the smallest in front.
type firsts []int

func (f firsts) Len() int           { return len(f) }
func (f firsts) Less(i, j int) bool { return f[i] < f[j] }
func (f firsts) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *firsts) Push(i any)        { *f = append(*f, i.(int)) }

func (f *firsts) Pop() any {
	last := len(*f) - 1
	i := (*f)[last]
	*f = (*f)[:last]
	return i
}

// labelTable returns the selector of an enumeration's labels. Fields of one type share it.
func (t *Trace) labelTable(typ *metadata.Integer) (*selector, error) {
	if table := t.labels[typ]; table != nil {
		return table, nil
	}
	table := &selector{otherwise: -1}
	for i, m := range typ.Mappings {
		if err := t.countWork(1 + len(m.Ranges)); err != nil {
			return nil, err
		}
		table.addRanges(m.Ranges, uint32(i), typ.Signed)
	}
	table.sort()
	if t.labels == nil {
		t.labels = map[*metadata.Integer]*selector{}
	}
	t.labels[typ] = table
	return table, nil
}

// Label returns the first label that an enumeration has for the field's value. It returns "" if there is none, or if
// the field is no enumeration.
func (f *Field) Label(v *Values) string {
	if f.labels == nil {
		return ""
	}
	value := v.Uint(f)
	if f.Kind == Int {
		value = uint64(v.Int(f)) ^ 1<<63
	}
	if s := f.labels.find(value); s != nil {
		return f.Type.(*metadata.Integer).Mappings[s.option].Label
	}
	return ""
}
