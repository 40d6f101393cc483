// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package usttrace

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// Properties of the programs.
const (
	cpus             = 4
	processes        = 2
	threadsOfProcess = 4
	// functions is the number of a program's functions, functionSize the size of each in bytes.
	functions    = 300
	functionSize = 64
	objectBase   = 0x5581_0000_0000
	// maxDepth is the maximum depth of calls.
	maxDepth = 24
	// One in workEvery events is not a call. After about switchEvery events a CPU switches to another thread.
	workEvery, switchEvery = 8, 500
	// shortest and longest bound the time between two events of a CPU, in nanoseconds.
	shortest, longest = 100, 900
	// begin is the clock's value at the begin of the trace.
	begin = 1_000_000_000_000
	// procnameSize is the size of the context procname.
	procnameSize = 17
)

// thread is a thread of a program.
type thread struct {
	// context contains the bytes of its contexts. It is empty without contexts.
	context []byte
	// stack contains the functions that have not returned.
	stack []uint64
}

// program contains all threads on all CPUs.
type program struct {
	random   *rand.Rand
	threads  []*thread
	contexts bool
	// running are the threads by CPU. ready threads wait for a CPU.
	running [cpus]*thread
	ready   []*thread
	// clocks are the times of the next event of each CPU. last is the time of the last event of all CPUs.
	clocks  [cpus]uint64
	last    uint64
	scratch []byte
}

func newProgram(o Options) *program {
	p := &program{random: rand.New(rand.NewPCG(o.Seed, 5)), contexts: o.Contexts}
	for i := range processes {
		for j := range threadsOfProcess {
			t := &thread{}
			if o.Contexts {
				pid := uint32(1000 + 100*i)
				t.context = binary.LittleEndian.AppendUint32(t.context, pid+uint32(j))
				t.context = binary.LittleEndian.AppendUint32(t.context, pid)
				name := make([]byte, procnameSize)
				copy(name, fmt.Sprintf("worker-%d", j))
				t.context = append(t.context, name...)
			}
			p.threads = append(p.threads, t)
		}
	}
	copy(p.running[:], p.threads)
	p.ready = append(p.ready, p.threads[cpus:]...)
	for i := range p.clocks {
		p.clocks[i] = begin
	}
	return p
}

// next returns the CPU and the time of the next event. No two events have the same time, because their order would be
// ambiguous.
func (p *program) next() (cpu int, at uint64) {
	for i := range p.clocks {
		if p.clocks[i] < p.clocks[cpu] {
			cpu = i
		}
	}
	p.last = max(p.clocks[cpu], p.last+1)
	p.clocks[cpu] = p.last + shortest + p.random.Uint64N(longest-shortest)
	return cpu, p.last
}

// relieve switches a CPU to the thread that has waited longest.
func (p *program) relieve(cpu int) {
	p.ready = append(p.ready, p.running[cpu])
	p.running[cpu] = p.ready[0]
	p.ready = p.ready[1:]
}

// address returns the address of a function.
func address(function uint64) uint64 { return objectBase + function*functionSize }

// call returns an event that enters or leaves a function.
func (p *program) call(t *thread, ending bool) (id uint32, content []byte) {
	depth := len(t.stack)
	enter := !ending && (depth == 0 || depth < maxDepth && p.random.IntN(2) == 0)
	caller := uint64(functions)
	if enter {
		t.stack = append(t.stack, p.random.Uint64N(functions))
		id = funcEntry
	} else {
		id = funcExit
	}
	depth = len(t.stack)
	if depth > 1 {
		caller = t.stack[depth-2]
	}
	b := append(p.scratch[:0], t.context...)
	b = binary.LittleEndian.AppendUint64(b, address(t.stack[depth-1]))
	b = binary.LittleEndian.AppendUint64(b, address(caller)+functionSize/2)
	if !enter {
		t.stack = t.stack[:depth-1]
	}
	p.scratch = b
	return id, b
}

// Texts of events that are not calls.
var (
	methods = [...]string{"GET", "POST", "PUT", "DELETE"}
	paths   = [...]string{"/", "/index.html", "/api/v1/orders", "/api/v1/orders/4711/positions", "/static/css/main.css"}
	names   = [...]string{"queue.length", "cache.hits", "cache.misses", "pool.threads"}
	states  = [...]uint32{200, 200, 200, 201, 304, 404, 500}
)

// work returns an event with texts, and numbers or sequences.
func (p *program) work(t *thread) (id uint32, content []byte) {
	b := append(p.scratch[:0], t.context...)
	if p.random.IntN(2) == 0 {
		id = workRequest
		b = appendText(b, methods[p.random.IntN(len(methods))])
		b = appendText(b, paths[p.random.IntN(len(paths))])
		b = binary.LittleEndian.AppendUint64(b, p.random.Uint64N(1<<20))
		b = binary.LittleEndian.AppendUint32(b, states[p.random.IntN(len(states))])
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(p.random.Float64()))
	} else {
		id = workSamples
		b = appendText(b, names[p.random.IntN(len(names))])
		n := p.random.IntN(6)
		b = append(b, byte(n))
		for range n {
			b = binary.LittleEndian.AppendUint32(b, uint32(p.random.Int32N(2000)-1000))
		}
		n = p.random.IntN(16)
		b = append(b, byte(n))
		for range n {
			b = append(b, byte(p.random.Uint32()))
		}
	}
	p.scratch = b
	return id, b
}

func appendText(b []byte, text string) []byte { return append(append(b, text...), 0) }

// state returns the events of a process's state at its begin, with its only object. t is the first thread of the
// process.
func (p *program) state(t *thread) (ids []uint32, contents [][]byte) {
	object := append([]byte{}, t.context...)
	object = binary.LittleEndian.AppendUint64(object, objectBase)
	object = binary.LittleEndian.AppendUint64(object, (functions+1)*functionSize)
	object = append(appendText(object, "/opt/usttrace/no/such/program"), 1, 0, 0)
	return []uint32{statedumpStart, statedumpObject, statedumpEnd}, [][]byte{t.context, object, t.context}
}
