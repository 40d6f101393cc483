// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package keytable

import "unsafe"

// TextsByAddress finds numbers of texts by their addresses. That is faster than a map, which reads each text. The same
// text may be in memory several times, so a text that is not found can have a number. Texts must stay in memory as long as
// their numbers are used. The zero value is empty.
type TextsByAddress struct {
	table Table
	found []text
}

type text struct {
	length int
	number uint32
}

// Find returns the number of a text, or of a variant of it.
func (t *TextsByAddress) Find(name string, variant uint8) (number uint32, ok bool) {
	found := t.table.Find(textKey(name, variant))
	if found == 0 || t.found[found-1].length != len(name) { // another text that begins at the same place
		return 0, false
	}
	return t.found[found-1].number, true
}

// Put stores the number of a text, unless another text begins at the same place.
func (t *TextsByAddress) Put(name string, variant uint8, number uint32) {
	if key := textKey(name, variant); t.table.Find(key) == 0 {
		t.found = append(t.found, text{len(name), number})
		t.table.Put(key, uint32(len(t.found)))
	}
}

// textKey is the place of a text, whose upper 8 bits are the same for all data, and the variant.
func textKey(name string, variant uint8) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.StringData(name))))<<8 | uint64(variant)
}
