// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

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
//   - A call of another function has the call site of a lower activation, and the call below that activation is of the
//     function that contains the site. Either the new call is inlined in that activation, or the caller of that
//     activation called again. Certainly the activations above it have ended.
//
// A call site in code without open calls shows nothing: its function has no instrumentation, for example a library
// that calls back, or the system's code that calls a signal handler. The library can call back from the same site
// while an earlier callback is open.
type openCalls struct {
	calls []openCall
}

// openCall is an open call: the address of its function, its call site, and the function of its activation with the
// size of its code, or 0 if that is not known.
type openCall struct{ function, site, activation, size uint64 }

// maxOpenCalls is the maximum number of known open calls of a thread. Beyond it the lower half is forgotten.
// fewOpenCalls is the number for which there is room at first.
const (
	maxOpenCalls  = 1 << 12
	fewOpenCalls  = 8
	openCallBytes = 32
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
		case c.activation == at:
			return o.lowest(i)
		case c.site == site && c.activation != function:
			if low := o.lowest(i); low > 0 && o.calls[low-1].activation == at {
				return low
			}
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

// isExpected reports whether a call from a site is certainly made by the call that was entered last, or may be inlined
// in it.
func (o *openCalls) isExpected(site uint64) bool {
	n := len(o.calls)
	if n == 0 {
		return true
	}
	top := &o.calls[n-1]
	// A return address can lie behind its function, if the callee never returns.
	return top.site == site || site-1-top.activation < top.size
}

// enter adds a call of a function with so many bytes of code. There is room, see grow.
func (o *openCalls) enter(function, site, size uint64) {
	n := len(o.calls)
	o.calls = o.calls[:n+1]
	c := &o.calls[n]
	c.function, c.site, c.activation, c.size = function, site, function, size
	if n > 0 {
		if below := &o.calls[n-1]; below.site == site {
			c.activation, c.size = below.activation, below.size
		}
	}
}

// exit removes the nearest call of a function, and the calls above it.
func (o *openCalls) exit(function uint64) {
	if n := len(o.calls) - 1; n >= 0 && o.calls[n].function == function {
		o.calls = o.calls[:n]
		return
	}
	o.exitLower(function)
}

func (o *openCalls) exitLower(function uint64) {
	for i := len(o.calls) - 1; i >= 0; i-- {
		if o.calls[i].function == function {
			o.calls = o.calls[:i]
			return
		}
	}
}

// isFull reports whether there is no room for another call.
func (o *openCalls) isFull() bool { return len(o.calls) == cap(o.calls) }

// grow makes room for more calls, and returns the growth in bytes.
func (o *openCalls) grow() int {
	before := cap(o.calls)
	if before >= maxOpenCalls {
		o.calls = o.calls[:copy(o.calls, o.calls[before/2:])]
		return 0
	}
	calls := make([]openCall, before, min(max(fewOpenCalls, 2*before), maxOpenCalls))
	copy(calls, o.calls)
	o.calls = calls
	return openCallBytes * (cap(calls) - before)
}
