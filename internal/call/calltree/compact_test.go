// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Services that grow one after the other use together the memory of one of them.
func TestTreesFreeUnusedMemory(t *testing.T) {
	const services, paths = 10, 9000
	set := settings()
	set.MaxNodes, set.MaxPending, set.MaxKeptSpans = 10_000, 1000, 100
	s := NewStore(set)
	for service := range services {
		from := Origin{Service: fmt.Sprint("s", service)}
		for i := range paths {
			s.Fold(from, []Span{{Trace: traceID(service), ID: spanID(i), Function: fmt.Sprint("f", i), Start: 1, End: 1001}})
		}
		// Everything else is small beside it, and is folded first.
		s.Fold(from, []Span{{Function: "huge", Start: 1, End: 1 << 62}})
	}
	check(t, s)
	nodes, functions := 0, 0
	for _, tree := range s.forest.trees {
		nodes += cap(tree.nodes)
		functions += cap(tree.functions.all)
	}
	most := sparse*set.MaxNodes + services*leastCompacted
	assert.Less(t, nodes, most)
	assert.Less(t, functions, most)
	snapshot, _ := s.Snapshot("s0", Calls)
	assert.Equal(t, "huge", snapshot.Nodes[0].Function)
	calls := uint64(0)
	for _, n := range snapshot.Nodes {
		calls += n.Calls
	}
	assert.EqualValues(t, paths+1, calls)
}

func TestFunctionsAreFoundUnderTheirNewNumbers(t *testing.T) {
	const all, gone = 1000, 500
	f := newFunctions(&usage{})
	for i := range all {
		f.ref(f.number(fmt.Sprint("f", i), 10))
	}
	for i := range gone {
		f.unref(f.number(fmt.Sprint("f", i), 10))
	}
	numbers := f.compact()
	for i := range all {
		name := fmt.Sprint("f", i)
		want := uint32(max(0, i-gone+1))
		assert.Equal(t, want, numbers[i+1], name)
		assert.Equal(t, want, f.find(uint32(maphash.String(f.seed, name)), name), name)
	}
}
