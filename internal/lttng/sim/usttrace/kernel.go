// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package usttrace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
)

// channelKernel is the only channel of a kernel trace. It has large event headers.
const channelKernel = channelCalls

// Types of fields as LTTng's modules declare them.
const (
	typeComm   = "integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; }"
	typeUint32 = "integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; }"
	typeInt64  = "integer { size = 64; align = 8; signed = 1; encoding = none; base = 10; }"
)

// kernelEvent is an event class of the kernel. content returns its fields.
type kernelEvent struct {
	name    string
	fields  []string
	content func(k *kernelMachine, b []byte, cpu int) []byte
}

// comm is the declaration of a thread's name.
func comm(name string) string { return typeComm + " _" + name + "[16]" }

// The event classes, by their IDs. The first two have threads in their fields.
const (
	processState = iota
	schedSwitch
	firstOther
)

var kernelEvents = []kernelEvent{
	processState: {"lttng_statedump_process_state", []string{typeInt32 + " _tid", typeInt32 + " _vtid", typeInt32 + " _pid", typeInt32 + " _vpid", typeInt32 + " _ppid", comm("name")}, nil},
	schedSwitch: {"sched_switch", []string{comm("prev_comm"), typeInt32 + " _prev_tid", typeInt32 + " _prev_prio", typeInt64 + " _prev_state",
		comm("next_comm"), typeInt32 + " _next_tid", typeInt32 + " _next_prio"}, nil},
	{"syscall_entry_read", []string{typeUint32 + " _fd", typeUint64 + " _count"}, func(k *kernelMachine, b []byte, _ int) []byte {
		return k.uint64(k.uint32(b, 64), 1<<16)
	}},
	{"syscall_exit_read", []string{typeInt64 + " _ret", typeAddress + " _buf"}, func(k *kernelMachine, b []byte, _ int) []byte {
		return k.uint64(k.uint64(b, 1<<12), 1<<40)
	}},
	{"syscall_entry_ioctl", []string{typeUint32 + " _fd", typeUint32 + " _cmd", typeUint64 + " _arg"}, func(k *kernelMachine, b []byte, _ int) []byte {
		return k.uint64(k.uint32(k.uint32(b, 64), 32), 1<<40)
	}},
	{"syscall_exit_ioctl", []string{typeInt64 + " _ret", typeUint64 + " _arg"}, func(k *kernelMachine, b []byte, _ int) []byte {
		return k.uint64(k.uint64(b, 2), 1<<40)
	}},
	{"kmem_cache_alloc", []string{typeAddress + " _call_site", typeAddress + " _ptr", typeUint64 + " _bytes_req", typeUint64 + " _bytes_alloc", typeInt32 + " _gfp_flags"},
		func(k *kernelMachine, b []byte, _ int) []byte {
			return k.uint32(k.uint64(k.uint64(k.uint64(k.uint64(b, 500), 1<<40), 64), 64), 8)
		}},
	{"kmem_cache_free", []string{typeAddress + " _call_site", typeAddress + " _ptr"}, func(k *kernelMachine, b []byte, _ int) []byte {
		return k.uint64(k.uint64(b, 500), 1<<40)
	}},
	{"sched_waking", []string{comm("comm"), typeInt32 + " _tid", typeInt32 + " _prio", typeInt32 + " _target_cpu"}, func(k *kernelMachine, b []byte, _ int) []byte {
		t := &k.threads[k.random.IntN(len(k.threads))]
		b = binary.LittleEndian.AppendUint32(append(b, t.comm[:]...), t.tid)
		return k.uint32(binary.LittleEndian.AppendUint32(b, priority), cpus)
	}},
	{"irq_handler_entry", []string{typeInt32 + " _irq", "string _name"}, func(k *kernelMachine, b []byte, _ int) []byte { return appendText(k.uint32(b, 64), "eth0") }},
	{"irq_handler_exit", []string{typeInt32 + " _irq", typeInt32 + " _ret"}, func(k *kernelMachine, b []byte, _ int) []byte { return k.uint32(k.uint32(b, 64), 2) }},
	{"softirq_entry", []string{typeUint32 + " _vec"}, func(k *kernelMachine, b []byte, _ int) []byte { return k.uint32(b, 10) }},
	{"softirq_exit", []string{typeUint32 + " _vec"}, func(k *kernelMachine, b []byte, _ int) []byte { return k.uint32(b, 10) }},
}

const (
	// kernelThreads and kernelProcesses are the numbers of threads and of their processes.
	kernelThreads, kernelProcesses = 60, 20
	// priority is that of all threads.
	priority = 20
	// One in switches events is a switch of the CPU to another thread.
	switches = 8
)

// kernelThread is a thread of the simulated kernel.
type kernelThread struct {
	tid, pid uint32
	comm     [16]byte
}

// kernelMachine makes events of a kernel at random.
type kernelMachine struct {
	random  *rand.Rand
	threads []kernelThread
	// running are the threads by CPU.
	running [cpus]*kernelThread
}

func newKernelMachine(seed uint64) *kernelMachine {
	k := &kernelMachine{random: rand.New(rand.NewPCG(seed, 7))}
	for i := range kernelThreads {
		t := kernelThread{tid: uint32(2000 + i), pid: uint32(2000 + i%kernelProcesses)}
		copy(t.comm[:], fmt.Sprintf("program-%d", i%kernelProcesses))
		k.threads = append(k.threads, t)
	}
	for cpu := range k.running {
		k.running[cpu] = &k.threads[cpu]
	}
	return k
}

func (k *kernelMachine) uint32(b []byte, below uint32) []byte {
	return binary.LittleEndian.AppendUint32(b, k.random.Uint32N(below))
}

func (k *kernelMachine) uint64(b []byte, below uint64) []byte {
	return binary.LittleEndian.AppendUint64(b, k.random.Uint64N(below))
}

// event returns the next event of a CPU.
func (k *kernelMachine) event(b []byte, cpu int) (id uint32, content []byte) {
	if k.random.IntN(switches) == 0 {
		return schedSwitch, k.relieve(b, cpu)
	}
	id = firstOther + k.random.Uint32N(uint32(len(kernelEvents)-firstOther))
	return id, kernelEvents[id].content(k, b, cpu)
}

// relieve switches a CPU to a thread that runs on no CPU.
func (k *kernelMachine) relieve(b []byte, cpu int) []byte {
	le, old := binary.LittleEndian, k.running[cpu]
	next := old
	for range k.threads {
		if next = &k.threads[k.random.IntN(len(k.threads))]; !k.runs(next) {
			break
		}
	}
	b = le.AppendUint32(le.AppendUint32(append(b, old.comm[:]...), old.tid), priority)
	b = append(le.AppendUint64(b, 1), next.comm[:]...) // 1: it sleeps
	k.running[cpu] = next
	return le.AppendUint32(le.AppendUint32(b, next.tid), priority)
}

func (k *kernelMachine) runs(t *kernelThread) bool {
	for _, other := range k.running {
		if other == t {
			return true
		}
	}
	return false
}

// state returns the event of the state dump for a thread.
func (t *kernelThread) state(b []byte) []byte {
	for _, n := range [...]uint32{t.tid, t.tid, t.pid, t.pid, 1} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return append(b, t.comm[:]...)
}

// kernelMetadata returns the metadata of a kernel trace.
func kernelMetadata() string {
	var b strings.Builder
	fmt.Fprintf(&b, preamble, uuidText(), "kernel", "lttng-modules")
	fmt.Fprintf(&b, "stream {\n\tid = %d;\n\tevent.header := struct event_header_large;\n\tpacket.context := struct packet_context;\n};\n\n", channelKernel)
	for id, e := range kernelEvents {
		declareEvent(&b, channelKernel, id, "", e.name, e.fields...)
	}
	return b.String()
}

// WriteKernel writes a trace of a kernel into an existing directory, with at least this number of events. Its events have no
// contexts: a state dump at the begin and switches show which thread runs. It ignores Contexts.
func WriteKernel(dir string, o Options) (Counts, error) {
	if o.Events < 1 {
		return Counts{}, errFewEvents(o.Events)
	}
	if err := writeMetadata(dir, kernelMetadata()); err != nil {
		return Counts{}, err
	}
	w := &writer{program: newProgram(Options{Seed: o.Seed})}
	err := w.open(dir, channelKernel+1)
	if err == nil {
		err = w.writeKernel(newKernelMachine(o.Seed), o.Events)
	}
	return w.counts, errors.Join(err, w.close())
}

func (w *writer) writeKernel(k *kernelMachine, events int) error {
	var b []byte
	for i := range k.threads {
		cpu, at := w.program.next()
		b = k.threads[i].state(b[:0])
		if err := w.event(channelKernel, cpu, at, processState, b); err != nil {
			return err
		}
	}
	for w.counts.Events < events {
		cpu, at := w.program.next()
		var id uint32
		id, b = k.event(b[:0], cpu)
		if err := w.event(channelKernel, cpu, at, id, b); err != nil {
			return err
		}
	}
	return nil
}
