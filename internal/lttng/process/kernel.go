// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"path"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
)

// kernel has the known threads of a kernel trace: which of them runs on each CPU, and the process and name of
// each. It learns them from switches of CPUs, forks, exits and state dumps, and from contexts of events. Everything that
// it has not learned is not known: it invents no thread and no process. A nil kernel knows nothing.
//
// Calls on a thread's lane are in the call stream of the thread's process. The process becomes known, or changes when
// it executes another program, while calls are open. The next calls of the thread then move to the other stream, after
// the open ones have ended.
type kernel struct {
	trace *Trace
	// threads are all threads except the idle ones, by their number. idle are the idle threads, by CPU: all of them
	// have the number 0.
	threads, idle map[int64]*kernelThread
	// running is the thread on each CPU, or nil.
	running []*kernelThread
	// epoch counts losses of events. The states of threads before a loss are not known after it.
	epoch uint32
	// hasSwitches is set if the trace may have switches of CPUs.
	hasSwitches bool
}

// kernelThread is a thread of the kernel.
type kernelThread struct {
	tid int64
	// pid is the process, if hasPID.
	pid    int64
	hasPID bool
	// exits is set if the thread has exited. It still runs until a switch shows that it is dead.
	exits bool
	name  string
	// lane is the ID of the thread's lane.
	lane uint64

	// epoch is that in which state and open were learned.
	epoch uint32
	state threadState
	// open are the rules with open calls on the lane. A rule beyond the last bit shares it.
	open uint64
	// owner has the calls of the lane. settled is set if it is the thread's process, as far as that is known.
	owner   *Process
	settled bool
}

// threadState is whether a thread runs.
type threadState uint8

const (
	stateUnknown threadState = iota
	stateRunning
	stateWaiting
)

const (
	// maxThreads bounds the known threads of a trace. Beyond it all are forgotten.
	maxThreads = 1 << 16
	// maxCPUs bounds the numbers of CPUs.
	maxCPUs = 1 << 14
	// threadBytes is the approximate size of a thread in memory.
	threadBytes = 200
	// maxCommBytes is the length at which Linux cuts names of threads.
	maxCommBytes = 15
	// ruleBits is the number of rules that kernelThread.open tells apart.
	ruleBits = 64
)

func newKernel(t *Trace) *kernel {
	return &kernel{trace: t, threads: map[int64]*kernelThread{}, idle: map[int64]*kernelThread{}}
}

// read returns the thread of an event, or nil if it is not known, and the process to which the event belongs. It learns
// what the event shows of threads before it happens.
func (k *kernel) read(p *mapping.Plan, e *ctf.Event, packet *ctf.Packet, nanos int64) (*kernelThread, *Process) {
	v := &e.Values
	k.learn(&p.Kernel, v, packet, p.CPU)
	cpu, hasCPU := p.CPU.Value(&packet.Values)
	var thread *kernelThread
	if tid, ok := p.TID.Value(v); ok {
		thread = k.threadOf(tid, packet, p.CPU)
		if pid, ok := p.PID.Value(v); ok {
			k.setProcess(thread, pid)
		}
		thread.setName(p.ThreadName.Bytes(v))
		if hasCPU {
			k.run(cpu, thread)
		}
	} else if hasCPU && cpu >= 0 && cpu < int64(len(k.running)) {
		thread = k.running[cpu]
	}
	return thread, k.processOf(thread, nanos)
}

// learn learns the process and the name of a thread from an event.
func (k *kernel) learn(e *mapping.KernelEvent, v *ctf.Values, packet *ctf.Packet, cpu mapping.Number) {
	switch e.Kind {
	case mapping.KernelSwitch:
		tid, _ := e.NextTID.Value(v)
		k.threadOf(tid, packet, cpu).setName(e.Name.Bytes(v))
	case mapping.KernelFork:
		tid, _ := e.TID.Value(v)
		if old := k.threads[tid]; old != nil {
			// The number belonged to a thread whose exit was not traced.
			k.remove(old)
		}
		fallthrough
	case mapping.KernelThread:
		tid, _ := e.TID.Value(v)
		thread := k.threadOf(tid, packet, cpu)
		if pid, ok := e.PID.Value(v); ok {
			k.setProcess(thread, pid)
		}
		if tid != 0 {
			thread.setName(e.Name.Bytes(v))
		}
		if e.Kind == mapping.KernelFork {
			thread.in(k).state = stateWaiting
		}
	}
}

// follow learns what an event changes: which thread runs, and which exists.
func (k *kernel) follow(e *mapping.KernelEvent, v *ctf.Values, packet *ctf.Packet, cpu mapping.Number) {
	tid, _ := e.TID.Value(v)
	switch e.Kind {
	case mapping.KernelSwitch:
		previous := k.threadOf(tid, packet, cpu)
		previous.in(k).state = stateWaiting
		if next, ok := e.NextTID.Value(v); ok {
			if n, ok := cpu.Value(&packet.Values); ok {
				k.run(n, k.threadOf(next, packet, cpu))
			}
		}
		if previous.exits && e.IsDead(v) {
			k.remove(previous)
		}
	case mapping.KernelExec:
		thread := k.threadOf(tid, packet, cpu)
		thread.setName(mapping.Prefix([]byte(path.Base(string(e.Name.Bytes(v)))), maxCommBytes))
		thread.settled = false
		if p := k.trace.processes[Key{pid: thread.pid}]; p != nil && thread.hasPID {
			p.replaced = true
		}
	case mapping.KernelExit:
		k.threadOf(tid, packet, cpu).exits = true
	case mapping.KernelFree:
		if thread := k.threads[tid]; thread != nil {
			k.remove(thread)
		}
	}
}

// threadOf returns the thread with a number. The idle thread of a CPU has the number 0.
func (k *kernel) threadOf(tid int64, packet *ctf.Packet, cpu mapping.Number) *kernelThread {
	if tid == 0 {
		n, _ := cpu.Value(&packet.Values)
		return k.idleOf(n)
	}
	thread := k.threads[tid]
	if thread == nil {
		if len(k.threads) >= maxThreads {
			k.forget()
		}
		thread = &kernelThread{tid: tid, lane: uint64(tid)}
		k.threads[tid] = thread
	}
	return thread
}

// idleOf returns the idle thread of a CPU.
func (k *kernel) idleOf(cpu int64) *kernelThread {
	thread := k.idle[cpu]
	if thread == nil {
		if len(k.idle) >= maxCPUs {
			clear(k.idle)
		}
		thread = &kernelThread{lane: mapping.IdleLane(cpu)}
		k.idle[cpu] = thread
	}
	return thread
}

// run sets the thread that runs on a CPU.
func (k *kernel) run(cpu int64, thread *kernelThread) {
	if cpu < 0 || cpu >= maxCPUs {
		return
	}
	for int64(len(k.running)) <= cpu {
		k.running = append(k.running, nil)
	}
	if k.running[cpu] != thread || thread.in(k).state != stateRunning {
		k.running[cpu] = thread
		thread.in(k).state = stateRunning
	}
}

// isWaiting reports whether a thread is known to run on no CPU.
func (k *kernel) isWaiting(thread *kernelThread) bool { return thread.in(k).state == stateWaiting }

// setProcess sets the process of a thread.
func (k *kernel) setProcess(thread *kernelThread, pid int64) {
	if thread.tid != 0 && (!thread.hasPID || thread.pid != pid) {
		thread.pid, thread.hasPID, thread.settled = pid, true, false
	}
}

// processOf returns the process to which events of a thread belong: its own, or the kernel itself if that is not known.
// If calls of the thread are open, it is the process that has them.
func (k *kernel) processOf(thread *kernelThread, nanos int64) *Process {
	if thread == nil {
		return k.machine(nanos)
	}
	if p := thread.owner; p != nil && !p.removed && (thread.settled || thread.in(k).open != 0) {
		p.seen = nanos
		return p
	}
	p := k.machine(nanos)
	if thread.hasPID {
		p = k.process(thread, nanos)
	}
	thread.leave()
	thread.owner, thread.settled, thread.open = p, true, 0
	p.threads++
	return p
}

// process returns the process of a thread.
func (k *kernel) process(thread *kernelThread, nanos int64) *Process {
	t, key := k.trace, Key{pid: thread.pid}
	p := t.processes[key]
	if p != nil && p.replaced {
		p.end(callevent.CauseEnded)
		t.remove(p)
		p = nil
	}
	if p == nil {
		// The first thread of a process has the process's number and name.
		program := thread.name
		if first := k.threads[thread.pid]; first != nil && first.name != "" {
			program = first.name
		}
		p = t.addProcess(key, program, nanos)
	}
	p.seen = nanos
	return p
}

// machine returns the kernel itself: a process without a number.
func (k *kernel) machine(nanos int64) *Process {
	p := k.trace.processes[machineKey]
	if p == nil {
		p = k.trace.addProcess(machineKey, machineProgram, nanos)
	}
	p.seen = nanos
	return p
}

// noteCall notes that a call of a rule began or ended on the lane of a thread.
func (k *kernel) noteCall(thread *kernelThread, r *mapping.RulePart) {
	bit := uint64(1) << min(r.Rule, ruleBits-1)
	thread.in(k)
	switch r.Kind {
	case callevent.KindEnterOutermost:
		thread.open = bit
	case callevent.KindEnter:
		thread.open |= bit
	default:
		thread.open &^= bit
	}
}

// remove removes a thread that has exited. With the last thread of a process, the process ends.
func (k *kernel) remove(thread *kernelThread) {
	if k.threads[thread.tid] != thread {
		return
	}
	delete(k.threads, thread.tid)
	for i := range k.running {
		if k.running[i] == thread {
			k.running[i] = nil
		}
	}
	p := thread.owner
	thread.leave()
	if p != nil && !p.removed && p.key != machineKey && p.threads == 0 {
		p.end(callevent.CauseEnded)
		k.trace.remove(p)
	}
}

// lose notes a loss of events. Which threads run is not known until the next switches. After a long time numbers of
// threads may belong to others, so nothing is known.
func (k *kernel) lose(isLong bool) {
	if k == nil {
		return
	}
	k.epoch++
	clear(k.running)
	if isLong {
		k.forget()
	}
}

// forget forgets all threads.
func (k *kernel) forget() {
	for _, thread := range k.threads {
		thread.leave()
	}
	clear(k.threads)
	clear(k.idle)
	clear(k.running)
}

// held returns the approximate size of the threads in memory, in bytes.
func (k *kernel) held() int {
	if k == nil {
		return 0
	}
	return threadBytes*(len(k.threads)+len(k.idle)) + 8*cap(k.running)
}

// in returns the thread, without a state that it had before the last loss.
func (t *kernelThread) in(k *kernel) *kernelThread {
	if t.epoch != k.epoch {
		t.epoch, t.state, t.open = k.epoch, stateUnknown, 0
	}
	return t
}

// setName sets the name, unless it is empty.
func (t *kernelThread) setName(name []byte) {
	if len(name) > 0 && string(name) != t.name {
		t.name = callevent.Name(name)
	}
}

// leave removes the thread from its owner.
func (t *kernelThread) leave() {
	if t.owner != nil {
		t.owner.threads--
		t.owner = nil
	}
}
