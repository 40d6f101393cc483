// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "slices"

// openCalls are the open calls of a thread, as far as their entries have call sites. They show that control has
// returned to a function by longjmp: the function makes a call, but calls above it have not ended.
//
// The call site of an entry is the return address of the machine function around it. The compiler can inline a
// function into another one. Then both entries have the same call site, and the calls of both are made from the code
// of the outer one. So consecutive open calls with the same call site count as one activation of the lowest of them.
// Only these calls end:
//
//   - A call has its site in the function of a lower activation. The activations above it have ended, and so have the
//     functions inlined in it, because no compiler inlines a function with setjmp.
//   - A call of another function has the call site of a lower activation. Either it is inlined in that activation, or
//     the caller of that activation called again. Certainly the activations above it have ended.
//
// A call site in code without open calls shows nothing: its function has no instrumentation, for example a library
// that calls back, or the system's code that calls a signal handler.
type openCalls struct {
	calls []openCall
}

// openCall is an open call: the address of its function, its call site, and the function of its activation.
type openCall struct{ function, site, activation uint64 }

// maxOpenCalls is the maximum number of known open calls of a thread. Beyond it the lower half is forgotten.
const (
	maxOpenCalls  = 1 << 12
	openCallBytes = 24
)

// caller returns the number of the open call that makes a call of a function from a site, if calls above it have
// ended without an exit. Otherwise it returns -1. at is the function that contains the site, or 0 if it is not known.
func (o *openCalls) caller(function, site, at uint64) int {
	top := &o.calls[len(o.calls)-1]
	if at == 0 || at == top.activation || site == top.site {
		return -1
	}
	for i := len(o.calls) - 2; i >= 0; i-- {
		switch c := &o.calls[i]; {
		case c.site == top.site:
		case c.activation == at, c.site == site && c.activation != function:
			return o.lowest(i)
		}
	}
	return -1
}

// lowest returns the number of the lowest call of the activation of call i.
func (o *openCalls) lowest(i int) int {
	for i > 0 && o.calls[i-1].site == o.calls[i].site {
		i--
	}
	return i
}

// enter adds a call.
func (o *openCalls) enter(function, site uint64) {
	activation := function
	if n := len(o.calls); n > 0 && o.calls[n-1].site == site {
		activation = o.calls[n-1].activation
	}
	if len(o.calls) == maxOpenCalls {
		o.calls = o.calls[:copy(o.calls, o.calls[maxOpenCalls/2:])]
	}
	o.calls = append(o.calls, openCall{function, site, activation})
}

// exit removes the nearest call of a function, and the calls above it.
func (o *openCalls) exit(function uint64) {
	for i := len(o.calls) - 1; i >= 0; i-- {
		if o.calls[i].function == function {
			o.calls = o.calls[:i]
			return
		}
	}
}

// grow makes room for another call, and returns the growth in bytes.
func (o *openCalls) grow() int {
	before := cap(o.calls)
	if len(o.calls) == before && before < maxOpenCalls {
		o.calls = slices.Grow(o.calls, 1)
	}
	return openCallBytes * (cap(o.calls) - before)
}
