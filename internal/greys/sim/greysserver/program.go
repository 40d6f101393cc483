// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// ProgramOptions describe the simulated program. A field that is 0 has its default, except Failures.
type ProgramOptions struct {
	// Classes is the number of classes, and Methods the number of methods of each class; default 10 and 10.
	Classes, Methods int
	// Rate is the number of outermost calls per second, each with its callees; default 100.
	Rate float64
	// Calls is the number of outermost calls before the program rests; default without end.
	Calls int64
	// Failures is the fraction of calls that throw, from 0 to 1.
	Failures float64
	// RecordEvery records each such call, as if a client had requested it; 0 means none.
	RecordEvery int64
	// Lambdas adds to each class a constructor, an interface, and a lambda that implements the interface. A released
	// server fails on them.
	Lambdas bool
	// Recursion makes the first method of each class call itself, and no other method. Without it no method calls
	// itself, unless there is only one.
	Recursion bool
	// Threads is the number of threads; default 4.
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

// or replaces a value that is not positive by its default.
func or[T int | int64 | float64 | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// method is the index of a method in the program.
type method int

// call is a completed call of the program.
type call struct {
	method method
	// start and end are offsets from the begin of the outermost call, in whole milliseconds.
	start, end time.Duration
	// throws is the type of the thrown object; empty means none.
	throws string
	// line is the source line of the call.
	line int32
	// callees are the direct callees, in order.
	callees []call
}

// program makes calls. The same seed makes the same calls. Only one goroutine may use it.
type program struct {
	options ProgramOptions
	random  *rand.Rand
	made    int64
}

func newProgram(o ProgramOptions) *program {
	return &program{options: o, random: rand.New(rand.NewPCG(o.Seed, 0))}
}

// Properties of calls.
const (
	maxCallees  = 3
	maxOwnTime  = 5 // in milliseconds, before each callee and after the last
	exception   = "com.example.shop.OutOfStock"
	packageName = "com.example.shop"
)

// next returns the next outermost call and its thread.
func (p *program) next() (c call, thread int) {
	p.made++
	c = p.call(0, maxCallees)
	return c, p.random.IntN(p.options.Threads)
}

// call returns a call that begins at start and has at most so many callees.
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

// calledBy returns the callee, or its replacement because of Recursion.
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

// methods returns the number of methods.
func (o ProgramOptions) methods() int { return o.Classes * o.Methods }

func (o ProgramOptions) classOf(m method) int { return int(m) / o.Methods }

// MethodName names a method.
type MethodName struct{ Class, Method string }

// MarshalText returns the qualified name.
func (n MethodName) MarshalText() ([]byte, error) { return []byte(n.Class + "." + n.Method), nil }

func (o ProgramOptions) nameOf(m method) MethodName {
	return MethodName{className(o.classOf(m)), fmt.Sprintf("operation%d", int(m)%o.Methods)}
}

func simpleName(class int) string { return fmt.Sprintf("Service%d", class) }

func className(class int) string { return packageName + "." + simpleName(class) }

// thread returns the thread of a number.
func thread(number int) javamethods.Thread {
	return javamethods.Thread{Name: fmt.Sprintf("worker-%d", number), ID: int64(20 + number), Daemon: number%2 == 1, Priority: 5}
}

// identity returns the hash code of a class's object, as Java writes it.
func identity(class int) string { return fmt.Sprintf("%#x", 0x4b1210ee+7919*class) }
