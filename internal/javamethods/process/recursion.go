// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strings"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/text"
)

// Times of a method that calls itself, directly or through others, are false: the server keeps one begin for each
// thread and command, and the inner call's begin replaces the outer call's begin. Monitors do not show which methods do
// that. Stacks do: such a method is in its stack more than once. So the receiver withholds a monitor's times until it
// has seen a number of calls (recursion_check) whose stacks have the method once. A method that is twice in a stack
// loses its times permanently. The detail of a recorded call has its stack.

// recursion has the results of stacks for all methods.
type recursion struct {
	// check is the number of calls that prove the times of a method; 0 means no check.
	check int
	// max limits the number of methods.
	max    int
	byName map[methodName]*nesting
	// bytes is the estimated memory of all methods.
	bytes int
}

// nesting has the results of stacks for one method.
type nesting struct {
	times timesState
	// calls is the number of seen calls outside of another call of the method.
	calls int
	// rows is the number of withheld rows.
	rows int64
}

// timesState tells whether the times of a method are true.
type timesState uint8

const (
	timesUnknown timesState = iota
	timesTrue
	timesFalse
)

// bytesOfNesting is the estimated memory of one method without its names.
const bytesOfNesting = 250

func newRecursion(check, most int) recursion {
	return recursion{check: check, max: most, byName: map[methodName]*nesting{}}
}

// MethodKey identifies a method in all replies. The console writes nested classes with dots in lists, and with dollar
// signs elsewhere.
type MethodKey struct{ name methodName }

// KeyOf returns the key of a method.
func KeyOf(class, method string) MethodKey {
	return MethodKey{methodName{strings.ReplaceAll(text.Short(class), "$", "."), text.Short(method)}}
}

// find returns the entry of a method; nil means none.
func (r *recursion) find(key MethodKey) *nesting { return r.byName[key.name] }

// of returns the entry of a method, and makes one if there is none.
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

// hasRoom reports whether one more method fits: a server can send any number of names.
func (r *recursion) hasRoom() bool { return len(r.byName) < r.max }

// isRecursive reports whether a method is known to call itself.
func (r *recursion) isRecursive(key MethodKey) bool {
	n := r.find(key)
	return n != nil && n.times == timesFalse
}

// isDecided reports whether the times of a method are known to be true or false.
func (r *recursion) isDecided(key MethodKey) bool {
	n := r.find(key)
	return n != nil && n.times != timesUnknown
}

// stack evaluates the stack of a call of one of the methods. It returns the methods that it shows to call themselves.
func (r *recursion) stack(of map[MethodKey]bool, frames []javamethods.Frame) (recursive []MethodKey) {
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
