// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// ProgramOptions say what a program does that never was. A field that is 0 has its default,
// but for Failures.
type ProgramOptions struct {
	// Classes is how many there are, and Methods how many each of them has; default 10
	// and 10.
	Classes, Methods int
	// Rate is how many times in a second something is called, which calls others itself;
	// default 100.
	Rate float64
	// Calls is how often that happens before the program rests; default: without end.
	Calls int64
	// Failures is the part of the calls that throw, from 0 to 1.
	Failures float64
	// RecordEvery is after how many calls one is recorded, as if somebody had asked for it;
	// 0: none is.
	RecordEvery int64
	// Lambdas says that each class also has a constructor, an interface of its own and a lambda
	// that implements it, on which a released server fails.
	Lambdas bool
	// Recursion says that the first method of each class calls itself, and nothing else; without it
	// none does, unless there is but one.
	Recursion bool
	// Threads is how many do this; default 4.
	Threads int
	Seed    uint64
}

func (o ProgramOptions) withDefaults() ProgramOptions {
	or(&o.Classes, 10)
	or(&o.Methods, 10)
	or(&o.Rate, 100)
	or(&o.Threads, 4)
	return o
}

// or has a value that is not above 0 be its default.
func or[T int | int64 | float64 | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// method is the number of a method among all.
type method int

// call is a call of the program, which has ended.
type call struct {
	method method
	// start and end are since the beginning of the outermost call: whole milliseconds.
	start, end time.Duration
	// throws is the type of what it threw; empty: nothing.
	throws string
	// line is from where it was called.
	line int32
	// callees are what it called itself, one after another.
	callees []call
}

// program makes calls, the same by the same seed. It is for one goroutine.
type program struct {
	options ProgramOptions
	random  *rand.Rand
	made    int64
}

func newProgram(o ProgramOptions) *program {
	return &program{options: o, random: rand.New(rand.NewPCG(o.Seed, 0))}
}

// What calls are like.
const (
	maxCallees  = 3
	maxOwnTime  = 5 // in milliseconds, before each callee and after the last
	exception   = "com.example.shop.OutOfStock"
	packageName = "com.example.shop"
)

// next makes the next outermost call, and says which thread it is of.
func (p *program) next() (c call, thread int) {
	p.made++
	c = p.call(0, maxCallees)
	return c, p.random.IntN(p.options.Threads)
}

// call makes a call that begins at a time, and has so many callees at most.
func (p *program) call(start time.Duration, callees int) call {
	o := p.options
	c := call{method: method(p.random.IntN(o.Classes * o.Methods)), start: start}
	c.line = int32(10 + p.random.IntN(90))
	at := start + p.ownTime()
	for range p.random.IntN(callees + 1) {
		callee := p.call(at, 0)
		callee.method = o.calledBy(c.method, callee.method)
		c.callees = append(c.callees, callee)
		at = callee.end + p.ownTime()
	}
	c.end = at
	if p.random.Float64() < o.Failures {
		c.throws = exception
	}
	return c
}

// calledBy is what a method calls that would call another one.
func (o ProgramOptions) calledBy(caller, callee method) method {
	switch {
	case o.Recursion && int(caller)%o.Methods == 0:
		return caller
	case caller == callee:
		return (callee + 1) % method(o.methods())
	default:
		return callee
	}
}

func (p *program) ownTime() time.Duration {
	return time.Duration(p.random.IntN(maxOwnTime+1)) * time.Millisecond
}

// methods is how many there are.
func (o ProgramOptions) methods() int { return o.Classes * o.Methods }

func (o ProgramOptions) classOf(m method) int { return int(m) / o.Methods }

// MethodName names a method.
type MethodName struct{ Class, Method string }

// MarshalText gives the qualified name.
func (n MethodName) MarshalText() ([]byte, error) { return []byte(n.Class + "." + n.Method), nil }

func (o ProgramOptions) nameOf(m method) MethodName {
	return MethodName{className(o.classOf(m)), fmt.Sprintf("operation%d", int(m)%o.Methods)}
}

func simpleName(class int) string { return fmt.Sprintf("Service%d", class) }

func className(class int) string { return packageName + "." + simpleName(class) }

// thread is what is known of a thread of the program.
func thread(number int) greys.Thread {
	return greys.Thread{Name: fmt.Sprintf("worker-%d", number), ID: int64(20 + number), Daemon: number%2 == 1, Priority: 5}
}

// identity is the hash code of the object of a class, as Java says it.
func identity(class int) string { return fmt.Sprintf("%#x", 0x4b1210ee+7919*class) }
