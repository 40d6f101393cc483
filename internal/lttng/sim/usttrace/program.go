// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package usttrace

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// What the programs are like.
const (
	cpus             = 4
	processes        = 2
	threadsOfProcess = 4
	// functions is how many a program has, each of so many bytes.
	functions    = 300
	functionSize = 64
	objectBase   = 0x5581_0000_0000
	// maxDepth is how deep calls go.
	maxDepth = 24
	// workEvery is how many events there are for each that is no call, and
	// switchEvery for each time that a CPU goes on with another thread.
	workEvery, switchEvery = 8, 500
	// shortest and longest is what lies between two events of a CPU, in nanoseconds.
	shortest, longest = 100, 900
	// begin is the clock's value at the begin of the trace.
	begin = 1_000_000_000_000
	// procnameSize is that of the context procname.
	procnameSize = 17
)

// thread is a thread of a program.
type thread struct {
	// context is the bytes of its contexts; empty without.
	context []byte
	// stack is the functions that it is in.
	stack []uint64
}

// program is all threads on all CPUs.
type program struct {
	random   *rand.Rand
	threads  []*thread
	contexts bool
	// running are the threads by CPU; ready wait for one.
	running [cpus]*thread
	ready   []*thread
	// clocks is when the next event of each CPU happens, last when the last one of all
	// did.
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

// next is the CPU that the next event happens on, and when. No two events happen at the
// same time, which would leave open which of them was first.
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

// relieve gives a CPU to the thread that has waited for longest.
func (p *program) relieve(cpu int) {
	p.ready = append(p.ready, p.running[cpu])
	p.running[cpu] = p.ready[0]
	p.ready = p.ready[1:]
}

// address is that of a function.
func address(function uint64) uint64 { return objectBase + function*functionSize }

// call enters a function or leaves one.
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

// Texts of events that are no calls.
var (
	methods = [...]string{"GET", "POST", "PUT", "DELETE"}
	paths   = [...]string{"/", "/index.html", "/api/v1/orders", "/api/v1/orders/4711/positions", "/static/css/main.css"}
	names   = [...]string{"queue.length", "cache.hits", "cache.misses", "pool.threads"}
	states  = [...]uint32{200, 200, 200, 201, 304, 404, 500}
)

// work is an event with texts, and numbers or sequences.
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

// state is what a process tells of itself at its begin: the one object that it has. The
// thread is the first of the process.
func (p *program) state(t *thread) (ids []uint32, contents [][]byte) {
	object := append([]byte{}, t.context...)
	object = binary.LittleEndian.AppendUint64(object, objectBase)
	object = binary.LittleEndian.AppendUint64(object, (functions+1)*functionSize)
	object = append(appendText(object, "/opt/usttrace/no/such/program"), 1, 0, 0)
	return []uint32{statedumpStart, statedumpObject, statedumpEnd}, [][]byte{t.context, object, t.context}
}
