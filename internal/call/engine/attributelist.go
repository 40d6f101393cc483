// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// attributeList has attributes in their order. A pcommon.Map searches all of them for a key,
// and a resource can have tens of thousands.
type attributeList []keyValue

type keyValue struct {
	key   string
	value pcommon.Value
}

// keyValueBytes is the memory of an attribute in a list.
const keyValueBytes = int(unsafe.Sizeof(keyValue{}))

// listOf lists the attributes of m, which must not change afterwards.
func listOf(m pcommon.Map) attributeList {
	list := make(attributeList, 0, m.Len())
	for key, value := range m.All() {
		list = append(list, keyValue{key, value})
	}
	return list
}

// are reports whether m has the same attributes in the same order, in a time that is
// proportional to their size.
func (l attributeList) are(m pcommon.Map) bool {
	if m.Len() != len(l) {
		return false
	}
	i := 0
	for key, value := range m.All() {
		if key != l[i].key || !sameValue(value, l[i].value) {
			return false
		}
		i++
	}
	return true
}

// sameValue reports whether a and b are the same. It reports false for maps and for lists
// inside lists, which resources hardly have.
func sameValue(a, b pcommon.Value) bool {
	if a.Type() != b.Type() || a.Type() == pcommon.ValueTypeMap {
		return false
	}
	if a.Type() != pcommon.ValueTypeSlice {
		return a.Equal(b)
	}
	x, y := a.Slice(), b.Slice()
	if x.Len() != y.Len() {
		return false
	}
	for i := range x.Len() {
		nested := x.At(i).Type() == pcommon.ValueTypeMap || x.At(i).Type() == pcommon.ValueTypeSlice
		if nested || !x.At(i).Equal(y.At(i)) {
			return false
		}
	}
	return true
}
