// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package load

// thread is one thread of the program with its stack.
type thread struct {
	id    uint16
	named bool
	// leaving is the exception that is ending methods, plus 1; 0 means none.
	leaving uint32
	stack   []frame
}

// frame is an open call.
type frame struct {
	method uint32
	call   int // its index in the record, or -1
}

// action is the next step of a thread.
type action uint8

const (
	enter action = iota
	leave
	throw // and let it end the method
	throwAndCatch
	unwind
	mark
)

// choices turns random numbers into actions.
type choices struct {
	depth      int
	functions  uint64
	markers    uint64 // of 2^32
	exceptions uint64 // of 2^32
}

func newChoices(o Options) choices {
	const all = 1 << 32
	return choices{
		depth:      o.Depth,
		functions:  uint64(o.Functions),
		markers:    uint64(o.Markers * all),
		exceptions: uint64(o.Exceptions * all),
	}
}

// next chooses the next action of a thread. low and high are 32 random bits each.
func (c *choices) next(t *thread, low, high uint64) action {
	switch {
	case t.leaving > 0:
		return unwind
	case low < c.markers:
		return mark
	case len(t.stack) == 0:
		return enter
	case len(t.stack) < c.depth && high&1 == 0:
		return enter
	default:
		return leave
	}
}

// instead chooses how a method ends, and with which exception.
func (c *choices) instead(random uint64) (a action, exception uint32) {
	if random&(1<<32-1) >= c.exceptions {
		return leave, 0
	}
	high := random >> 32
	exception = uint32(high % exceptions)
	switch high / exceptions % 8 {
	case 0, 1:
		return unwind, exception // from untraced code
	case 2:
		return throwAndCatch, exception
	default:
		return throw, exception
	}
}
