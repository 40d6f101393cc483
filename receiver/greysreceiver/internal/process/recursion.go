// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strings"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/text"
)

// A method that calls itself, directly or through others, has false times: the server keeps one
// begin for each thread and command, and the begin of the inner call replaces that of the outer
// one. Monitors do not show which methods those are. Stacks do: such a method stands in its stack
// more than once. So times of monitors are withheld until a number of calls (recursion_check)
// was seen whose stacks have the method once. A method that a stack has twice loses its times for
// good. The detail of a recorded call has its stack.

// recursion is what stacks have shown of methods.
type recursion struct {
	// check is how many calls prove that the times of a method are true; 0: nothing is checked.
	check int
	// max bounds the methods.
	max    int
	byName map[methodName]*nesting
	// bytes is the memory of all methods, estimated.
	bytes int
}

// nesting is what stacks have shown of one method.
type nesting struct {
	times timesState
	// calls is how many calls were seen outside of another call of the method.
	calls int
	// rows is how many rows were withheld.
	rows int64
}

// timesState says whether the times of a method are true.
type timesState uint8

const (
	timesUnknown timesState = iota
	timesTrue
	timesFalse
)

// bytesOfNesting is the memory of one method without its names, estimated.
const bytesOfNesting = 250

func newRecursion(check, most int) recursion {
	return recursion{check: check, max: most, byName: map[methodName]*nesting{}}
}

// MethodKey names a method as all replies do: the console writes a nested class with dots in
// lists, and with dollars elsewhere.
type MethodKey struct{ name methodName }

// KeyOf returns the key of a method.
func KeyOf(class, method string) MethodKey {
	return MethodKey{methodName{strings.ReplaceAll(text.Short(class), "$", "."), text.Short(method)}}
}

// find returns the entry of a method; nil: none.
func (r *recursion) find(key MethodKey) *nesting { return r.byName[key.name] }

// of returns the entry of a method, and makes one where none is.
func (r *recursion) of(key MethodKey) *nesting {
	n := r.byName[key.name]
	if n == nil {
		n = &nesting{}
		name := methodName{strings.Clone(key.name.class), strings.Clone(key.name.method)}
		r.byName[name] = n
		r.bytes += bytesOfNesting + 2*(len(name.class)+len(name.method))
	}
	return n
}

// hasRoom reports whether one more method has room: a server can name any number.
func (r *recursion) hasRoom() bool { return len(r.byName) < r.max }

// isRecursive reports whether a method is known to call itself.
func (r *recursion) isRecursive(key MethodKey) bool {
	n := r.find(key)
	return n != nil && n.times == timesFalse
}

// isDecided reports whether it is known that the times of a method are true, or false.
func (r *recursion) isDecided(key MethodKey) bool {
	n := r.find(key)
	return n != nil && n.times != timesUnknown
}

// stack counts a call of one of some methods, by its stack. It returns the methods that are found
// to call themselves.
func (r *recursion) stack(of map[MethodKey]bool, frames []greys.Frame) (recursive []MethodKey) {
	seen := map[MethodKey]bool{}
	for i, f := range frames {
		key := KeyOf(f.Class, f.Method)
		if !of[key] {
			continue
		}
		n := r.of(key)
		if seen[key] && n.times != timesFalse {
			n.times = timesFalse
			recursive = append(recursive, key)
		}
		if i == 0 && n.times == timesUnknown {
			n.calls++
		}
		seen[key] = true
	}
	if len(frames) == 0 {
		return nil
	}
	first := KeyOf(frames[0].Class, frames[0].Method)
	if n := r.find(first); of[first] && n.times == timesUnknown && n.calls >= r.check {
		n.times = timesTrue
	}
	return recursive
}
