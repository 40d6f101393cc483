// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersAreInOrder(t *testing.T) {
	ordered := []Number{
		{Negative: true, Magnitude: math.MaxUint64}, Signed(math.MinInt64), Signed(-2), Signed(-1), {},
		Unsigned(1), Signed(math.MaxInt64), Unsigned(math.MaxUint64),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			switch c := a.Compare(b); {
			case i < j:
				require.Equal(t, -1, c, "%s and %s", a, b)
			case i > j:
				require.Equal(t, 1, c, "%s and %s", a, b)
			default:
				require.Zero(t, c, "%s and %s", a, b)
			}
		}
		next, ok := a.Next()
		require.Equal(t, i < len(ordered)-1, ok)
		require.Equal(t, ok, next.Compare(a) > 0, "%s", a)
	}
	next, _ := Signed(-1).Next()
	require.Equal(t, Number{}, next)
	require.Equal(t, "-18446744073709551615", ordered[0].String())
}

func TestNumbersOfGo(t *testing.T) {
	for _, c := range []struct {
		n        Number
		unsigned bool
		signed   bool
	}{
		{Signed(math.MinInt64), false, true},
		{Number{Negative: true, Magnitude: 1<<63 + 1}, false, false},
		{Signed(math.MaxInt64), true, true},
		{Unsigned(1 << 63), true, false},
	} {
		_, ok := c.n.Uint64()
		require.Equal(t, c.unsigned, ok, "%s", c.n)
		i, ok := c.n.Int64()
		require.Equal(t, c.signed, ok, "%s", c.n)
		if ok {
			require.Equal(t, c.n, Signed(i))
		}
	}
}

func TestLabels(t *testing.T) {
	mappings := []Mapping{
		{Label: "below", Ranges: []Range{{Low: Signed(-5), High: Signed(-1)}}},
		{Label: "few", Ranges: []Range{{Low: Unsigned(1), High: Unsigned(3)}, {Low: Unsigned(9), High: Unsigned(9)}}},
		{Label: "three", Ranges: []Range{{Low: Unsigned(3), High: Unsigned(3)}}},
		{Label: "most", Ranges: []Range{{Low: Unsigned(math.MaxUint64), High: Unsigned(math.MaxUint64)}}},
	}
	for value, want := range map[uint64]string{0: "", 1: "few", 3: "few", 9: "few", 4: "", math.MaxUint64: "most"} {
		require.Equal(t, want, (&Integer{Mappings: mappings}).Label(value), "%d", value)
	}
	require.Equal(t, "below", (&Integer{Signed: true, Mappings: mappings}).Label(math.MaxUint64))
}

func TestAlignments(t *testing.T) {
	byte8 := &Integer{Size: 8, Align: 8}
	for name, c := range map[string]struct {
		typ  Type
		want uint64
	}{
		"a structure of nothing":      {NewStruct(nil, 1), 1},
		"a structure's own":           {NewStruct([]Member{{Type: byte8}}, 32), 32},
		"the largest of its members'": {NewStruct([]Member{{Type: byte8}, {Type: &Float{Align: 64}}}, 16), 64},
		"an array's element's":        {&Array{Element: byte8}, 8},
		"an array's own":              {&Array{Element: byte8, MinAlign: 16}, 16},
		"a string's":                  {&String{}, 8},
		"bytes'":                      {&Bytes{}, 8},
		"a variable integer's":        {&Integer{Variable: true}, 8},
		"a variant's":                 {&Variant{Options: []Option{{Type: byte8}}}, 1},
		"an optional field's":         {&Optional{Type: byte8}, 1},
	} {
		require.Equal(t, c.want, c.typ.Alignment(), name)
	}
}
