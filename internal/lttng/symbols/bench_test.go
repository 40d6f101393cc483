// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"
)

// BenchmarkLookup looks up addresses in a process with 200 objects.
func BenchmarkLookup(b *testing.B) {
	o := NewObjects(nil, DefaultMaxObjects)
	var addresses []uint64
	for i := range uint64(200) {
		m := Mapping{Base: i << 20, Size: 1 << 19, Path: "/lib" + strconv.FormatUint(i, 10)}
		if err := o.Map(m); err != nil {
			b.Fatal(err)
		}
		for j := range uint64(20) {
			addresses = append(addresses, m.Base+j*64)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		o.Lookup(addresses[i])
		if i++; i == len(addresses) {
			i = 0
		}
	}
}

// BenchmarkReadTable reads a file with 100,000 functions, about as many as a large C++ program has.
func BenchmarkReadTable(b *testing.B) {
	m := image{size: 1 << 30}
	for i := range uint64(100_000) {
		name := fmt.Sprintf("_ZN4shop6Order%d3payEi", i)
		m.symbols = append(m.symbols, imageSymbol{name: name, start: i * 7919 % 100_000 * 64, size: 64})
	}
	data := m.bytes()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readTable(bytes.NewReader(data), int64(len(data)), identity{memorySize: m.size}, DefaultSettings(), unchecked); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDemangled makes the names of a new function.
func BenchmarkDemangled(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		demangled("_ZNK4shop3BoxISt6vectorIiSaIiEEE2asIiEET_S5_")
	}
}
