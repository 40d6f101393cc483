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
type kernel struct {
	// gone is called for a thread that has exited. executes is called for one whose process executes another program.
	gone, executes func(*kernelThread)
	// threads are all threads except the idle ones, by their number. idle are the idle threads, by CPU: all of them
	// have the number 0.
	threads, idle map[int64]*kernelThread
	// running is the thread on each CPU, or nil.
	running []*kernelThread
	// calls are those of rules with KeyIsThread.
	calls cpuCalls
	// latest is the thread that threadOf found last, or nil: a switch names the next thread several times.
	latest *kernelThread
	// epoch counts losses of events. The states of threads before a loss are not known after it.
	epoch uint32
	// hasSwitches is set if the trace may have switches of CPUs.
	hasSwitches bool
}

// kernelThread is a thread of the kernel.
type kernelThread struct {
	mapping.Thread
	// pid is the process, if hasPID.
	pid    int64
	hasPID bool
	// exits is set if the thread has exited. It still runs until a switch shows that it is dead.
	exits bool
	// laneID is the ID of the thread's lane.
	laneID uint64

	// epoch is that in which state and open were learned.
	epoch uint32
	state threadState
	// open are the rules with open calls on the lane. A rule beyond the last bit shares it.
	open uint64
	// owner has the calls of the lane. settled is set if it is the thread's process, as far as that is known.
	owner   *Process
	settled bool
}

// ThreadRecord is a known thread of the kernel, for the next reader.
type ThreadRecord struct {
	TID int64 `json:"tid"`
	// PID is the process, or 0 if it is not known.
	PID  int64  `json:"pid,omitempty"`
	Name string `json:"name,omitempty"`
	// CPU is the CPU that the thread runs on, or nil.
	CPU *int64 `json:"cpu,omitempty"`
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
	threadBytes = 260 + maxThreadNameBytes
	// maxCommBytes is the length at which Linux cuts names of threads. maxThreadNameBytes is enough for those in traces.
	maxCommBytes, maxThreadNameBytes = 15, 64
	// ruleBits is the number of rules that kernelThread.open tells apart.
	ruleBits = 64
)

func newKernel(gone, executes func(*kernelThread)) *kernel {
	return &kernel{gone: gone, executes: executes, threads: map[int64]*kernelThread{}, idle: map[int64]*kernelThread{}}
}

// records returns the known threads. Of the idle ones it returns those that run.
func (k *kernel) records() []ThreadRecord {
	records := make([]ThreadRecord, 0, len(k.threads)+len(k.running))
	cpus := map[*kernelThread]*int64{}
	for i, thread := range k.running {
		if thread == nil {
			continue
		}
		cpu := int64(i)
		cpus[thread] = &cpu
		if thread.ID() == 0 {
			records = append(records, ThreadRecord{CPU: &cpu})
		}
	}
	for tid, thread := range k.threads {
		records = append(records, ThreadRecord{tid, thread.pid, thread.Name(), cpus[thread]})
	}
	return records
}

// restore adds the threads that an earlier reader knew.
func (k *kernel) restore(records []ThreadRecord) {
	for _, r := range records[:min(len(records), maxThreads)] {
		thread := &kernelThread{
			Thread: mapping.NewThread(r.TID, r.Name), pid: r.PID, hasPID: r.PID != 0, laneID: uint64(r.TID),
		}
		switch {
		case r.TID != 0:
			k.threads[r.TID] = thread
		case r.CPU != nil:
			thread = k.idleOf(*r.CPU)
		}
		if r.CPU != nil {
			k.run(*r.CPU, thread)
		}
	}
}

// read returns the thread of an event, or nil if it is not known. It learns the names and processes that the event
// shows.
func (k *kernel) read(p *mapping.Plan, e *ctf.Event, packet *ctf.Packet) *kernelThread {
	v := &e.Values
	if p.Kernel.Kind != mapping.KernelNone {
		k.learn(&p.Kernel, v, packet, p.CPU)
	}
	tid, hasTID := p.TID.Value(v)
	if !hasTID {
		return k.runningOn(packet, p.CPU)
	}
	thread := k.threadOf(tid, packet, p.CPU)
	if pid, ok := p.PID.Value(v); ok {
		k.setProcess(thread, pid)
	}
	thread.setName(p.ThreadName.Bytes(v))
	if cpu, ok := p.CPU.Value(&packet.Values); ok {
		k.run(cpu, thread)
	}
	return thread
}

// runningOn returns the thread that runs on the CPU of a packet, or nil if it is not known.
func (k *kernel) runningOn(packet *ctf.Packet, cpu mapping.Number) *kernelThread {
	if n, ok := cpu.Value(&packet.Values); ok && n >= 0 && n < int64(len(k.running)) {
		return k.running[n]
	}
	return nil
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
		previous := k.leaving(tid, packet, cpu)
		previous.in(k).state = stateWaiting
		if next, ok := e.NextTID.Value(v); ok {
			if n, ok := cpu.Value(&packet.Values); ok {
				k.run(n, k.threadOf(next, packet, cpu))
			}
		}
		if e.IsDead(v, previous.exits) {
			k.remove(previous)
		}
	case mapping.KernelExec:
		thread := k.threadOf(tid, packet, cpu)
		thread.setName(mapping.Prefix([]byte(path.Base(string(e.Name.Bytes(v)))), maxCommBytes))
		thread.exits = false
		caller := k.takeOver(thread, packet, cpu)
		k.executes(thread)
		if caller != nil {
			k.remove(caller)
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
	if k.latest != nil && k.latest.ID() == tid {
		return k.latest
	}
	thread := k.threads[tid]
	if thread == nil {
		if len(k.threads) >= maxThreads {
			k.forget()
		}
		thread = &kernelThread{Thread: mapping.NewThread(tid, ""), laneID: uint64(tid)}
		k.threads[tid] = thread
	}
	return thread
}

// leaving returns the thread with a number that leaves a CPU. It is the one that runs there, if that is known.
func (k *kernel) leaving(tid int64, packet *ctf.Packet, cpu mapping.Number) *kernelThread {
	if thread := k.runningOn(packet, cpu); thread != nil && thread.ID() == tid {
		return thread
	}
	return k.threadOf(tid, packet, cpu)
}

// idleOf returns the idle thread of a CPU.
func (k *kernel) idleOf(cpu int64) *kernelThread {
	thread := k.idle[cpu]
	if thread == nil {
		if len(k.idle) >= maxCPUs {
			clear(k.idle)
		}
		thread = &kernelThread{laneID: mapping.IdleLane(cpu)}
		k.idle[cpu] = thread
	}
	k.latest = thread
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

// takeOver sets the thread that runs on a CPU to the first thread of a process that executes another program. It returns
// the thread that ran there if that is another one: it has called execve, and now has the number of the first thread,
// which has exited.
func (k *kernel) takeOver(first *kernelThread, packet *ctf.Packet, cpu mapping.Number) *kernelThread {
	caller := k.runningOn(packet, cpu)
	if caller == nil || caller == first || caller.ID() == 0 {
		return nil
	}
	if caller.hasPID {
		k.setProcess(first, caller.pid)
	}
	n, _ := cpu.Value(&packet.Values)
	k.run(n, first)
	k.calls.exchange(n, caller.ID(), first.ID())
	return caller
}

// setProcess sets the process of a thread.
func (k *kernel) setProcess(thread *kernelThread, pid int64) {
	if thread.ID() != 0 && (!thread.hasPID || thread.pid != pid) {
		thread.pid, thread.hasPID, thread.settled = pid, true, false
	}
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

// remove removes a thread that has exited.
func (k *kernel) remove(thread *kernelThread) {
	if k.threads[thread.ID()] != thread {
		return
	}
	delete(k.threads, thread.ID())
	k.latest = nil
	for i := range k.running {
		if k.running[i] == thread {
			k.running[i] = nil
		}
	}
	k.gone(thread)
}

// lose notes a loss of events. Which threads run is not known until the next switches. After a long time numbers of
// threads may belong to others, so nothing is known.
func (k *kernel) lose(isLong bool) {
	if k == nil {
		return
	}
	k.epoch++
	clear(k.running)
	k.calls.end()
	if isLong {
		k.forget()
	}
}

// endCalls notes that all open calls have ended.
func (k *kernel) endCalls() {
	if k == nil {
		return
	}
	k.calls.end()
	for _, threads := range []map[int64]*kernelThread{k.threads, k.idle} {
		for _, thread := range threads {
			thread.open = 0
		}
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
	k.latest = nil
}

// held returns the approximate size of the threads in memory, in bytes.
func (k *kernel) held() int {
	if k == nil {
		return 0
	}
	return threadBytes*(len(k.threads)+len(k.idle)) + 8*cap(k.running) + k.calls.held()
}

// in returns the thread, without a state that it had before the last loss.
func (t *kernelThread) in(k *kernel) *kernelThread {
	if t.epoch != k.epoch {
		t.epoch, t.state, t.open = k.epoch, stateUnknown, 0
	}
	return t
}

// leavesLast reports whether a thread leaves its last CPU with an event.
func (t *kernelThread) leavesLast(e *mapping.KernelEvent, v *ctf.Values) bool {
	if e.Kind != mapping.KernelSwitch {
		return false
	}
	tid, _ := e.TID.Value(v)
	return tid == t.ID() && e.IsDead(v, t.exits)
}

// setName sets the name, unless it is empty.
func (t *kernelThread) setName(name []byte) {
	name = mapping.Prefix(name, maxThreadNameBytes)
	if len(name) > 0 && string(name) != t.Name() {
		t.SetName(callevent.Name(name))
	}
}

// known returns the thread for its log records; nil if it is not known.
func (t *kernelThread) known() *mapping.Thread {
	if t == nil {
		return nil
	}
	return &t.Thread
}

// leave removes the thread from its owner.
func (t *kernelThread) leave() {
	if t.owner != nil {
		t.owner.threads--
		t.owner = nil
	}
}
