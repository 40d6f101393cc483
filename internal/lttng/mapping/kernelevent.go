// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// KernelKind is the change that an event of the kernel shows in its threads.
type KernelKind uint8

const (
	KernelNone KernelKind = iota
	// KernelSwitch: a CPU switches from one thread to another.
	KernelSwitch
	// KernelThread has the process and the name of a thread. It belongs to a state dump.
	KernelThread
	// KernelFork: there is a new thread.
	KernelFork
	// KernelExec: a process executes another program.
	KernelExec
	// KernelExit: a thread exits. It still runs, and may wait, until a switch with IsDead.
	KernelExit
	// KernelFree: a thread that has exited is gone.
	KernelFree
)

// KernelEvent is the change that events of a class show in the kernel's threads.
type KernelEvent struct {
	Kind KernelKind
	// TID is the thread: before a switch, new after a fork, and in the other events the one that they are about.
	TID Number
	// PID is the process of the thread. Only KernelThread has it, and KernelFork since LTTng 2.2.
	PID Number
	// NextTID is the thread after a switch.
	NextTID Number
	// state is the state of the thread before a switch.
	state Number
	// Name is the name of the thread, or the path of the executed file. After a switch it is that of the next thread.
	Name Text
}

// kernelEvents are the kinds and the names of the fields of the kernel's events.
var kernelEvents = map[string]struct {
	kind                    KernelKind
	tid, pid, nextTID, comm string
}{
	EventSwitch:                     {kind: KernelSwitch, tid: "prev_tid", nextTID: "next_tid", comm: "next_comm"},
	"lttng_statedump_process_state": {kind: KernelThread, tid: "tid", pid: "pid", comm: "name"},
	"sched_process_fork":            {kind: KernelFork, tid: "child_tid", pid: "child_pid", comm: "child_comm"},
	"sched_process_exec":            {kind: KernelExec, tid: "tid", comm: "filename"},
	"sched_process_exit":            {kind: KernelExit, tid: "tid", comm: "comm"},
	"sched_process_free":            {kind: KernelFree, tid: "tid", comm: "comm"},
}

// newKernelEvent returns the kernel event of a class. A class that lacks the fields of its kind is KernelNone.
func newKernelEvent(class *ctf.EventClass) KernelEvent {
	fields, ok := kernelEvents[class.Name]
	if !ok {
		return KernelEvent{}
	}
	number := func(name string) Number {
		if name == "" {
			return Number{}
		}
		return numberAt(class, metadata.EventFields, name)
	}
	e := KernelEvent{
		Kind: fields.kind, TID: number(fields.tid), PID: number(fields.pid), NextTID: number(fields.nextTID),
		Name: textAt(class, metadata.EventFields, fields.comm), state: number("prev_state"),
	}
	if !e.TID.exists() || fields.nextTID != "" && !e.NextTID.exists() || e.Kind == KernelThread && !e.PID.exists() {
		return KernelEvent{}
	}
	return e
}

// Threads in these states do not run again. Every thread in one of exitStates is such a thread, in any version of Linux.
// Threads that have not exited may be in the other deadStates.
const (
	exitStates = 16 | 32
	deadStates = exitStates | 64 | 128
)

// IsDead reports whether the thread before a switch does not run again. exits is set if the trace shows that it has
// exited.
func (e *KernelEvent) IsDead(v *ctf.Values, exits bool) bool {
	state, _ := e.state.Value(v)
	return state&exitStates != 0 || exits && state&deadStates != 0
}

// EventSwitch is the name of the event that shows which thread runs on a CPU.
const EventSwitch = "sched_switch"
