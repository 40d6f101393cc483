// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callstream"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
)

// cpuCalls are the calls of rules with KeyIsThread in a trace of the kernel, by CPU: the time that a CPU runs a thread.
// They belong to the process of the thread, and are on a lane of the rule and the CPU in its call stream. So a process
// has as many of these lanes as it has used CPUs, with any number of threads.
//
//  1. An entry begins a call of the thread's process. A CPU runs one thread, so the entry ends an earlier call of the
//     rule on the CPU. That call has no exit, so it is truncated: on the lane of one process by the entry itself,
//     otherwise by the next entry on its own lane.
//  2. An exit ends the call of its thread on its CPU, in the process of the entry. Without such a call it means nothing.
//  3. If the process of the thread executes another program, the old process ends, and with it the call. The new process
//     gets a call with the rest of the time.
type cpuCalls struct {
	// byCPU has at most one call for each rule.
	byCPU [][]cpuCall
	// divided is the number of calls that the next process of their thread continues.
	divided int
	// bytes is the approximate size of the calls in memory.
	bytes int
}

// cpuCall is a call of a rule on a CPU. Its parts are kept for the process that executes another program.
type cpuCall struct {
	rule int
	// owner is the process that has the call, or nil if no call is open.
	owner  *Process
	thread int64
	// divided is set if the owner has ended, because the thread executes another program. The thread's next process gets
	// the rest of the time.
	divided    bool
	lane       uint64
	name       []byte
	attributes []callevent.KeyValue
	bytes      int
}

const cpuCallBytes, keyValueBytes = int(unsafe.Sizeof(cpuCall{})), int(unsafe.Sizeof(callevent.KeyValue{}))

// at returns the place for the call of a rule on a CPU, or nil if there is no such CPU.
func (c *cpuCalls) at(cpu int64, rule int) *cpuCall {
	if cpu < 0 || cpu >= maxCPUs {
		return nil
	}
	for int64(len(c.byCPU)) <= cpu {
		c.byCPU = append(c.byCPU, nil)
	}
	for i := range c.byCPU[cpu] {
		if call := &c.byCPU[cpu][i]; call.rule == rule {
			return call
		}
	}
	c.byCPU[cpu] = append(c.byCPU[cpu], cpuCall{rule: rule})
	c.bytes += cpuCallBytes
	return &c.byCPU[cpu][len(c.byCPU[cpu])-1]
}

// leave notes that a call has ended.
func (c *cpuCalls) leave(call *cpuCall) {
	if call.divided {
		c.divided--
	}
	call.owner, call.divided = nil, false
}

// enter notes that a call has begun.
func (c *cpuCalls) enter(call *cpuCall, owner *Process, thread int64, lane uint64, name []byte, attributes []callevent.KeyValue) {
	c.leave(call)
	call.owner, call.thread, call.lane = owner, thread, lane
	call.name = append(call.name[:0], name...)
	call.attributes = append(call.attributes[:0], attributes...)
	bytes := cap(call.name) + keyValueBytes*cap(call.attributes)
	for _, a := range attributes {
		bytes += len(a.Value.Str())
	}
	c.bytes += bytes - call.bytes
	call.bytes = bytes
}

// exchange notes that the thread on a CPU has the number of another thread now, which has its former number.
func (c *cpuCalls) exchange(cpu, former, now int64) {
	for of, calls := range c.byCPU {
		for i := range calls {
			switch call := &calls[i]; {
			case call.thread == former && int64(of) == cpu:
				call.thread = now
			case call.thread == now:
				call.thread = former
			}
		}
	}
}

// end notes that no call is open.
func (c *cpuCalls) end() {
	for _, calls := range c.byCPU {
		for i := range calls {
			c.leave(&calls[i])
		}
	}
}

func (c *cpuCalls) held() int { return c.bytes + int(unsafe.Sizeof([]cpuCall{}))*cap(c.byCPU) }

// readCPUCall packs an event of a rule with KeyIsThread.
func (t *Trace) readCPUCall(r *mapping.RulePart, p *mapping.Plan, e *ctf.Event, packet *ctf.Packet, nanos int64) {
	thread, hasThread := r.Thread(e, packet)
	if !hasThread {
		t.noKey++
		t.shared.warnNoKey(p.Name)
		return
	}
	cpu, _ := r.CPU(packet)
	call := t.kernel.calls.at(cpu, r.Rule)
	if call == nil {
		t.noKey++
		t.shared.warnNoCPU(cpu)
		return
	}
	if r.IsExit() {
		owner := call.owner
		if owner == nil || call.thread != thread {
			return
		}
		if t.kernel.calls.leave(call); !owner.removed {
			owner.seen = nanos
			t.packRule(r, e, packet, nanos, owner, owner.lane(call.lane, nil))
		}
		return
	}
	process := t.ownerOf(t.kernel.threadOf(thread, packet, p.CPU), nanos)
	if !t.isReady(process, p.Name) {
		return
	}
	lane := r.CPULane(cpu, mapping.Key{})
	name := t.packRule(r, e, packet, nanos, process, process.lane(lane, nil))
	var attributes []callevent.KeyValue
	if r.HasDetails() {
		attributes = t.details.Attributes
	}
	t.kernel.calls.enter(call, process, thread, lane, name, attributes)
}

// divideCPUCalls ends the call of a process on a CPU that the next process of the thread continues. The process ends
// because this thread has executed another program, and so has the number of the process. All its other threads have ended.
func (t *Trace) divideCPUCalls(p *Process, nanos int64) {
	if !p.replaced || !p.calls.IsOpen() {
		return
	}
	for _, calls := range t.kernel.calls.byCPU {
		for i := range calls {
			call := &calls[i]
			if call.owner == p && call.thread == p.key.pid && !call.divided {
				call.divided = true
				t.kernel.calls.divided++
				p.pack(callevent.KindExitTop, nanos, nil, p.lane(call.lane, nil), nil)
			}
		}
	}
}

// continueCPUCalls begins the divided calls of a thread again, in its new process.
func (t *Trace) continueCPUCalls(thread *kernelThread, p *Process, nanos int64) {
	if t.kernel.calls.divided == 0 {
		return
	}
	for _, calls := range t.kernel.calls.byCPU {
		for i := range calls {
			call := &calls[i]
			if !call.divided || call.thread != thread.ID() || !t.isReady(p, mapping.EventSwitch) {
				continue
			}
			t.kernel.calls.leave(call)
			call.owner = p
			t.details = callstream.Details{Attributes: append(t.details.Attributes[:0], call.attributes...)}
			p.pack(callevent.KindEnterOutermost, nanos, p.names.named(call.name), p.lane(call.lane, nil), &t.details)
		}
	}
}
