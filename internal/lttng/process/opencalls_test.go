// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Machine functions for tests: the code of function f reaches from f to f+99.
const (
	fMain, fOuter, fInlined, fOther, fLeaf = 100, 200, 300, 400, 500
	// fWalk is a function with a symbol, but without instrumentation.
	fWalk = 800
	// fLibrary is a function without instrumentation and symbol.
	fLibrary = 900
)

// known returns the function around a call site, or 0 for the library.
func known(site uint64) uint64 {
	if site >= fLibrary {
		return 0
	}
	return site / 100 * 100
}

// entry enters a function from a site, or leaves it.
type entry struct {
	function, site uint64
	exit           bool
}

func TestACallFromALowerActivationEndsTheCallsAboveIt(t *testing.T) {
	in := func(function, site uint64) entry { return entry{function: function, site: site} }
	out := func(function uint64) entry { return entry{function: function, exit: true} }
	for name, c := range map[string]struct {
		events []entry
		// want is the number of the caller for each entry, -1: no call has ended.
		want []int
	}{
		"calls and returns": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fLeaf, 210), out(fLeaf), out(fOuter), in(fOther, 120)},
			[]int{-1, -1, -1, -1},
		},
		"longjmp from a callee": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fLeaf, 210), in(fOther, 120)},
			[]int{-1, -1, -1, 0},
		},
		"longjmp, and the same call again": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fLeaf, 210), in(fOuter, 110)},
			[]int{-1, -1, -1, 0},
		},
		"longjmp to the middle of the stack": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fOther, 210), in(fLeaf, 410), in(fLeaf, 220)},
			[]int{-1, -1, -1, -1, 1},
		},
		"the nearest activation is the caller": {
			[]entry{in(fOuter, 910), in(fOther, 210), in(fOuter, 410), in(fLeaf, 220), in(fOther, 210)},
			[]int{-1, -1, -1, -1, 2},
		},
		"recursion": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fOuter, 210), in(fOuter, 210), in(fLeaf, 220), out(fLeaf), out(fOuter), in(fLeaf, 220)},
			[]int{-1, -1, -1, -1, -1, -1},
		},
		"recursion in turn": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fOther, 210), in(fOuter, 410), in(fOther, 210), in(fLeaf, 410)},
			[]int{-1, -1, -1, -1, -1, -1},
		},
		// The entry of an inlined function has the call site of the function around it, and calls from its code lie in that
		// function.
		"inlined functions and their calls": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fInlined, 110), in(fOther, 110), in(fLeaf, 210), out(fLeaf), out(fOther), in(fLeaf, 220)},
			[]int{-1, -1, -1, -1, -1, -1},
		},
		"a call from a copy of an inlined function that is not open": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fInlined, 110), in(fOther, 210), in(fLeaf, 310)},
			[]int{-1, -1, -1, -1, -1},
		},
		"longjmp out of an inlined function's callee": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fInlined, 110), in(fLeaf, 210), in(fOther, 220)},
			[]int{-1, -1, -1, -1, 1},
		},
		"longjmp, and an inlined function": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fLeaf, 210), in(fInlined, 110)},
			[]int{-1, -1, -1, 1},
		},
		"an inlined function in itself": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fOuter, 110), in(fLeaf, 210)},
			[]int{-1, -1, -1, -1},
		},
		"a library calls back": {
			[]entry{in(fMain, 910), in(fOuter, 920), in(fLeaf, 210), out(fLeaf), out(fOuter), in(fOuter, 920), in(fOther, 920)},
			[]int{-1, -1, -1, -1, -1},
		},
		"a function without instrumentation calls back, and is called again by its callback": {
			[]entry{in(fMain, 910), in(fOuter, fWalk+10), in(fLeaf, 210), in(fOther, fWalk+10)},
			[]int{-1, -1, -1, -1},
		},
		"the first known call is a callback": {
			[]entry{in(fOuter, fWalk+10), in(fLeaf, 210), in(fOther, fWalk+10)},
			[]int{-1, -1, -1},
		},
		"a signal handler": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fOther, 930), in(fLeaf, 410), out(fLeaf), out(fOther), in(fLeaf, 210)},
			[]int{-1, -1, -1, -1, -1},
		},
		"longjmp out of a signal handler": {
			[]entry{in(fMain, 910), in(fOuter, 110), in(fOther, 930), in(fLeaf, 120)},
			[]int{-1, -1, -1, 0},
		},
		"a call from a function that was entered before the trace": {
			[]entry{in(fLeaf, 210), out(fLeaf), out(fOuter), in(fLeaf, 110), in(fOther, 510)},
			[]int{-1, -1, -1},
		},
	} {
		for _, size := range []uint64{0, 100} {
			var o openCalls
			var got []int
			for _, e := range c.events {
				if e.exit {
					o.exit(e.function)
					continue
				}
				caller := -1
				if !o.isExpected(e.site) {
					caller = o.caller(e.function, e.site, known(e.site))
				}
				if caller >= 0 {
					o.calls = o.calls[:caller+1]
				}
				got = append(got, caller)
				if o.isFull() {
					o.grow()
				}
				o.enter(e.function, e.site, size)
			}
			assert.Equal(t, c.want, got, "%s, functions of size %d", name, size)
		}
	}
}

func TestTheOpenCallsOfAThreadAreBounded(t *testing.T) {
	var o openCalls
	held := 0
	for i := range uint64(10 * maxOpenCalls) {
		if o.isFull() {
			held += o.grow()
		}
		o.enter(1000*i, 1000*i-500, 100)
	}
	assert.LessOrEqual(t, len(o.calls), maxOpenCalls)
	assert.Equal(t, openCallBytes*cap(o.calls), held)
	assert.Equal(t, maxOpenCalls, cap(o.calls))
	// The latest calls are known.
	last := uint64(10*maxOpenCalls - 1)
	require.Equal(t, 1000*last, o.calls[len(o.calls)-1].function)
	require.Equal(t, 1000*(last-maxOpenCalls/2+1), o.calls[len(o.calls)-maxOpenCalls/2].function)
}
