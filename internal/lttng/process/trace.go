// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callstream"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/mutf8"
)

// Trace contains the processes of a CTF trace, and makes log records and call events from its events. The group's
// goroutine uses it.
type Trace struct {
	shared *shared
	// key identifies the trace, now and in later collectors.
	key string
	// resumed are processes that an earlier reader followed, and that had no event since.
	resumed []Record
	// threads are those of the kernel that an earlier reader knew. They are nil once kernel has them.
	threads []ThreadRecord

	plans []*mapping.Plan
	// planBytes is the approximate size of the plans.
	planBytes int
	// hasStateDumps is set if processes may record their objects. Without state dumps no call waits for one.
	hasStateDumps bool
	// pid and program are set for a trace of one process.
	pid     int64
	hasPID  bool
	program string

	processes map[Key]*Process
	last      *Process
	// kernel has the threads of a kernel trace. It is nil for other traces.
	kernel *kernel
	// rules are what the event classes mean for each call rule.
	rules []ruleUse
	// unknown is the origin of events without a process.
	unknown *Origin

	// losses is the number of open intervals with missing events. lossCause is the cause of the first one.
	losses    int
	lossCause callevent.Cause

	// Call events that were dropped, and call values that were cut, since Publish.
	noProcess, noThread, noKey, cutValues int64
	// scratch is a buffer for keys and names.
	scratch []byte
	// details and texts are for the attributes of call events.
	details callstream.Details
	texts   *mapping.Texts
}

const (
	// sameStart is the maximum time in nanoseconds between a process's first event and its state dump,
	// and between its dumps for several channels: a program runs during a dump.
	sameStart = int64(time.Second)
	// threadSuffix is LTTng-UST's suffix of the program's name for its own threads.
	threadSuffix = "-ust"
	// machineProgram is the name of the kernel as a program.
	machineProgram = "kernel"
)

// Begin begins to read the trace, from the beginning or after Break.
func (t *Trace) Begin(c *ctf.Trace) {
	t.forgetMetadata()
	if !IsOfKernel(c) {
		t.forgetKernel()
	}
	t.ReadMetadata(c)
}

// forgetMetadata forgets everything that was made from the metadata.
func (t *Trace) forgetMetadata() {
	t.plans, t.planBytes, t.losses, t.rules = nil, 0, 0, nil
}

// forgetKernel forgets the threads of the kernel.
func (t *Trace) forgetKernel() {
	t.kernel.lose(true)
	t.kernel = nil
}

// IsOfKernel reports whether the metadata declares a trace of the kernel.
func IsOfKernel(c *ctf.Trace) bool { return c.Env("domain") == "kernel" }

// ReadMetadata reads metadata that is new since the last call.
func (t *Trace) ReadMetadata(c *ctf.Trace) {
	pid, err := strconv.ParseInt(c.Env("vpid"), 10, 64)
	if t.hasPID = err == nil; t.hasPID {
		t.pid, t.program = pid, c.Env("procname")
	}
	if t.kernel == nil && IsOfKernel(c) {
		t.kernel = newKernel(t.endThread, t.execute)
		t.kernel.restore(t.threads)
		t.threads = nil
	}
	known := len(t.plans)
	if known == c.EventClasses() {
		return
	}
	t.plans = append(t.plans, make([]*mapping.Plan, c.EventClasses()-len(t.plans))...)
	for _, s := range c.Metadata().Events {
		if strings.HasPrefix(s.Name, mapping.StateDumpPrefix) {
			t.hasStateDumps = true
		}
		if t.kernel != nil && s.Name == mapping.EventSwitch {
			t.kernel.hasSwitches = true
		}
	}
	if t.shared.Traces && len(t.shared.Rules) > 0 {
		t.checkRules(c, known)
	}
}

// IsOfOneProcess reports whether the trace has one process, by its metadata.
func (t *Trace) IsOfOneProcess() bool { return t.hasPID }

// plan returns the plan of an event class.
func (t *Trace) plan(class *ctf.EventClass) *mapping.Plan {
	if class.Index < len(t.plans) {
		if p := t.plans[class.Index]; p != nil {
			return p
		}
	}
	return t.newPlan(class)
}

// newPlan makes the plan of an event class.
func (t *Trace) newPlan(class *ctf.EventClass) *mapping.Plan {
	if class.Index >= len(t.plans) {
		// The first packet of a trace without stream classes adds its event classes.
		t.plans = append(t.plans, make([]*mapping.Plan, class.Index+1-len(t.plans))...)
	}
	var records mapping.Records
	if t.shared.logs != nil {
		s := &t.shared.logs.settings
		records = mapping.Records{MaxBytes: s.MaxRecordBytes, EnumerationNumbers: s.EnumerationNumbers, Hexadecimal: s.Hexadecimal}
	}
	p := mapping.NewPlan(class, t.shared.Rules, t.kernel != nil, records)
	t.plans[class.Index] = p
	t.planBytes += p.Size()
	// In traces with contexts, or of one process, any event may be the first one of a process.
	class.Unused = !p.UsesValues(t.shared.Traces) && (t.kernel != nil || !t.hasPID)
	return p
}

// ReadEvent makes a log record and a call event from an event, and applies it to the state of its process. nanos is
// its Unix time. Events of unused classes change nothing.
func (t *Trace) ReadEvent(e *ctf.Event, packet *ctf.Packet, nanos int64) {
	if e.Class.Unused {
		return
	}
	p := t.plan(e.Class)
	var process *Process
	var thread *kernelThread
	if t.kernel != nil {
		thread = t.kernel.read(p, e, packet)
		process = t.ownerOf(thread, nanos)
	} else {
		process = t.processOf(p, e, nanos)
	}
	if process != nil && p.State.Kind != mapping.StateNone && !process.applyState(&p.State, &e.Values) {
		process = t.replace(process)
	}
	if p.Record != nil {
		of := t.unknown
		if process != nil {
			of = &process.Origin
		}
		t.shared.logs.append(p, e, packet, nanos, of, thread.known())
	}
	if t.shared.Traces {
		if p.Call.Source != mapping.CallNone {
			t.readCall(p, e, nanos, process)
		}
		for i := range p.Rules {
			t.readRule(&p.Rules[i], p, e, packet, nanos, process, thread)
		}
	}
	if p.Kernel.Kind != mapping.KernelNone {
		t.kernel.follow(&p.Kernel, &e.Values, packet, p.CPU)
	}
	if t.kernel != nil {
		t.settle(p, packet, nanos)
	}
}

// processOf returns the process of an event, or nil if the event has none.
func (t *Trace) processOf(p *mapping.Plan, e *ctf.Event, nanos int64) *Process {
	key, ok := t.keyOf(p, e)
	if !ok {
		return nil
	}
	process := t.last
	if process == nil || process.key != key {
		if process = t.processes[key]; process == nil {
			process = t.addProcess(key, programOf(p, e), nanos)
		}
		t.last = process
	}
	process.seen = nanos
	if p.State.Kind == mapping.StateBegin {
		return t.beginDump(process, p, e, nanos)
	}
	return process
}

// ownerOf returns the process to which events of a thread of the kernel belong: its own, or the kernel itself if that
// is not known.
//
// Calls on the thread's lane are in the call stream of the owner. The process becomes known, or changes when it executes
// another program, while calls are open. Then the owner stays until the open calls have ended.
func (t *Trace) ownerOf(thread *kernelThread, nanos int64) *Process {
	if thread == nil {
		return t.machine(nanos)
	}
	if p := thread.owner; p != nil && !p.removed && (thread.settled || thread.in(t.kernel).open != 0) {
		p.seen = nanos
		return p
	}
	p := t.machine(nanos)
	if thread.hasPID {
		p = t.processOfThread(thread, nanos)
	}
	thread.leave()
	thread.owner, thread.settled, thread.open = p, true, 0
	p.threads++
	t.continueCPUCalls(thread, p, nanos)
	return p
}

// settle finds the process of the thread that runs after an event. The thread may execute another program now. If
// nothing is made of events, the next ones of the CPU may be unused.
func (t *Trace) settle(p *mapping.Plan, packet *ctf.Packet, nanos int64) {
	thread := t.kernel.runningOn(packet, p.CPU)
	if thread != nil && (!thread.settled || p.Kernel.Kind != mapping.KernelNone && t.shared.makesNothing()) {
		t.ownerOf(thread, nanos)
	}
}

// machine returns the kernel itself: a process without a number.
func (t *Trace) machine(nanos int64) *Process {
	p := t.processes[machineKey]
	if p == nil {
		p = t.addProcess(machineKey, machineProgram, nanos)
	}
	p.seen = nanos
	return p
}

// processOfThread returns the process of a thread of the kernel.
func (t *Trace) processOfThread(thread *kernelThread, nanos int64) *Process {
	key := Key{pid: thread.pid}
	p := t.processes[key]
	if p != nil && p.replaced {
		t.divideCPUCalls(p, nanos)
		p.end(callevent.CauseEnded)
		t.remove(p)
		p = nil
	}
	if p == nil {
		// The first thread of a process has the process's number and name.
		program := thread.Name()
		if first := t.kernel.threads[thread.pid]; first != nil && first.Name() != "" {
			program = first.Name()
		}
		p = t.addProcess(key, program, nanos)
	}
	p.seen = nanos
	return p
}

// execute notes that the process of a thread executes another program.
func (t *Trace) execute(thread *kernelThread) {
	thread.settled = false
	if p := t.processes[Key{pid: thread.pid}]; p != nil && thread.hasPID {
		p.replaced = true
	}
}

// endThread ends the process of a thread that has exited, if it was the last one.
func (t *Trace) endThread(thread *kernelThread) {
	p := thread.owner
	thread.leave()
	if p != nil && !p.removed && p.key != machineKey && p.threads == 0 {
		t.divideCPUCalls(p, p.seen)
		p.end(callevent.CauseEnded)
		t.remove(p)
	}
}

// keyOf returns the key of an event's process, if the event contains it.
func (t *Trace) keyOf(p *mapping.Plan, e *ctf.Event) (key Key, ok bool) {
	if key.pid, ok = p.PID.Value(&e.Values); !ok {
		if !t.hasPID {
			return key, false
		}
		key.pid = t.pid
	}
	key.namespace, _ = p.Namespace.Value(&e.Values)
	return key, true
}

// programOf returns the name of the program of a process whose first event is e. The thread's name is the program's,
// unless the program names its threads, as Java and Python do.
func programOf(p *mapping.Plan, e *ctf.Event) string {
	if p.Runtime != "" {
		return p.Runtime
	}
	return strings.TrimSuffix(callevent.Name(p.ThreadName.Bytes(&e.Values)), threadSuffix)
}

// addProcess returns a new process. If the trace does not name its program, the name is program.
func (t *Trace) addProcess(key Key, program string, nanos int64) *Process {
	if t.shared.processes.Load() >= int64(t.shared.Limits.Processes) {
		t.shared.processesFull()
	}
	process := t.resume(key)
	if process == nil {
		process = newProcess(t.shared, t.key, key, nanos, 0)
		process.program = cmp.Or(t.program, program)
	}
	process.hasExecutable = t.kernel != nil && process.HasPID
	if t.losses > 0 {
		process.calls.BeginBreak(t.lossCause)
	}
	t.processes[key] = process
	t.shared.processes.Add(1)
	return process
}

// resume returns the process of a key if an earlier reader followed it; nil otherwise.
func (t *Trace) resume(key Key) *Process {
	i := slices.IndexFunc(t.resumed, func(r Record) bool { return Key{r.Namespace, r.PID} == key })
	if i < 0 {
		return nil
	}
	r := t.resumed[i]
	t.resumed = slices.Delete(slices.Clone(t.resumed), i, i+1)
	process := newProcess(t.shared, t.key, key, r.Begun, r.Next)
	process.program = r.Program
	process.dump.begun, process.dump.begunAt = len(r.Objects) > 0, r.Begun
	process.restoreObjects(r.Objects)
	if r.Next > 0 {
		process.calls.BreakHere(callevent.CauseDisconnected)
	}
	return process
}

// beginDump begins a state dump of a process. If the process had a complete dump already, tracing was stopped for a
// time, or another process has its ID now. The objects distinguish these.
func (t *Trace) beginDump(old *Process, p *mapping.Plan, e *ctf.Event, nanos int64) *Process {
	before := old.begun
	if old.dump.begun {
		before = old.dump.begunAt
	}
	if nanos-before <= sameStart && !old.dump.listed {
		old.dump.begun, old.dump.begunAt = true, nanos
		return old
	}
	if old.beginDumpAgain(nanos) {
		return old
	}
	old.end(callevent.CauseEnded)
	t.remove(old)
	process := t.addProcess(old.key, programOf(p, e), nanos)
	process.dump.begun, process.dump.begunAt, process.seen = true, nanos, nanos
	t.last = process
	return process
}

// remove removes a process that has ended.
func (t *Trace) remove(p *Process) {
	p.removed = true
	p.objects.clear()
	delete(t.processes, p.key)
	t.shared.processes.Add(-1)
	if t.last == p {
		t.last = nil
	}
}

// replace ends a process whose key belongs to another process since the last state dump began. The new process
// receives the calls that wait for names. Other calls since then are not paired.
func (t *Trace) replace(old *Process) *Process {
	objects, waiting := old.objects.recorded, old.removeWaiting()
	old.calls.EndBreak()
	old.calls.BreakSince(old.dump.againFrom, callevent.CauseSuspended)
	old.end(callevent.CauseEnded)
	old.objects.clear()

	p := newProcess(t.shared, t.key, old.key, old.dump.againAt, 0)
	p.program = cmp.Or(old.dump.program, old.program)
	p.dump.begun, p.dump.begunAt, p.seen = true, old.dump.againAt, old.seen
	p.restoreObjects(objects)
	if t.losses > 0 {
		p.calls.BeginBreak(t.lossCause)
	}
	t.processes[p.key], t.last = p, p
	p.packInherited(waiting)
	return p
}

// Resumes reports whether an event means that tracing of its process resumes.
func (t *Trace) Resumes(e *ctf.Event) bool {
	p := t.plan(e.Class)
	if p.State.Kind != mapping.StateBegin {
		return false
	}
	key, ok := t.keyOf(p, e)
	if !ok {
		return false
	}
	process := t.processes[key]
	return process != nil && process.dump.listed
}

// readCall packs an event that may be a call event.
func (t *Trace) readCall(p *mapping.Plan, e *ctf.Event, nanos int64, process *Process) {
	c, v := &p.Call, &e.Values
	kind := c.Kind
	var values []byte
	if c.Source == mapping.CallRecord {
		if kind, values = c.CallOfRecord(v); kind == 0 {
			return
		}
	}
	if !t.isReady(process, p.Name) {
		return
	}
	l := t.lane(p, v, process)
	if l == nil {
		return
	}
	switch c.Source {
	case mapping.CallAddress:
		process.packAddress(kind, nanos, c.Address(v), c.Site(v), l, t.hasStateDumps)
	case mapping.CallTop:
		process.pack(kind, nanos, nil, l, nil)
	case mapping.CallRecord:
		f := process.names.method(c.Class.Bytes(v), c.Method.Bytes(v))
		if len(values) == 0 {
			process.pack(kind, nanos, f, l, nil)
			return
		}
		process.pack(kind, nanos, f, l, t.detailsOf(kind, values))
	}
}

// isReady reports whether a process can pack a call event. Otherwise it counts the event.
func (t *Trace) isReady(process *Process, event string) bool {
	if process == nil {
		t.noProcess++
		t.shared.warnNoProcess(event)
		return false
	}
	if process.calls.IsOpen() {
		return true
	}
	if err := process.open(); err != nil {
		t.noProcess++
		t.shared.logCannotPack(err)
		return false
	}
	if !t.hasStateDumps && t.kernel == nil {
		t.shared.logNoStateDump()
	}
	return true
}

// lane returns the owner of the call stack of an event: its thread. It returns nil if the event has none.
func (t *Trace) lane(p *mapping.Plan, v *ctf.Values, process *Process) *lane {
	if id, ok := p.Call.Thread.Value(v); ok {
		return process.lane(uint64(id)|callevent.LaneManaged, p.ThreadName.Bytes(v))
	}
	id, ok := p.TID.Value(v)
	if !ok {
		t.noThread++
		t.shared.warnNoThread(p.Name)
		return nil
	}
	return process.lane(uint64(id), p.ThreadName.Bytes(v))
}

// detailsOf returns the arguments or the return value of a call of a log record, cut to the maximum
// of a batch.
func (t *Trace) detailsOf(kind callevent.Kind, values []byte) *callstream.Details {
	if len(values) > callevent.MaxNameBytes {
		t.cutValues++
	}
	key := AttributeArguments
	if kind == callevent.KindExit {
		key = AttributeReturnValue
	}
	t.details.Attributes = append(t.details.Attributes[:0], callevent.KeyValue{Key: key, Value: callevent.StringValue(callevent.Name(mutf8.DecodeBytes(values)))})
	return &t.details
}

// reuse keeps the buffer of a text for the next one, unless it is large.
func (t *Trace) reuse(text []byte) {
	if cap(text) <= 2*callevent.MaxNameBytes {
		t.scratch = text
	}
}

// BeginLoss begins an interval with missing events. It breaks all call streams: threads move between
// CPUs, so each stream of packets may have events of every thread.
func (t *Trace) BeginLoss(lost merge.Cause) {
	t.losses++
	if t.losses > 1 {
		return
	}
	t.lossCause = breakCause(lost)
	for _, p := range t.processes {
		p.calls.BeginBreak(t.lossCause)
	}
	t.kernel.lose(lost == merge.Stopped || lost == merge.Interrupted)
	t.shared.Telemetry.Break(t.lossCause)
}

// EndLoss ends an interval of BeginLoss.
func (t *Trace) EndLoss() {
	if t.losses--; t.losses > 0 {
		return
	}
	for _, p := range t.processes {
		p.calls.EndBreak()
		p.calls.FlushBreaks()
	}
	t.kernel.lose(false)
}

// breakCause returns the cause of the break for missing events.
func breakCause(c merge.Cause) callevent.Cause {
	switch c {
	case merge.Overtaken, merge.Disordered:
		return callevent.CauseUnresponsive
	case merge.Interrupted:
		return callevent.CauseDisconnected
	case merge.Stopped:
		return callevent.CauseSuspended
	case merge.NoRoom:
		return callevent.CauseLimit
	default:
		return callevent.CauseDiscarded
	}
}

// Break breaks all call streams and delivers them: the trace cannot be read until Begin. continues is set if no event is
// read twice or left out then, except by losses. The threads of a kernel, and who runs on each CPU, stay known only
// then.
func (t *Trace) Break(cause callevent.Cause, continues bool) {
	for _, p := range t.processes {
		p.calls.EndBreak()
		p.calls.BreakHere(cause)
		p.calls.Flush()
	}
	t.shared.Telemetry.Break(cause)
	switch {
	case !continues:
		t.forgetKernel()
	case t.losses > 0:
		t.kernel.lose(false) // the end of the loss is not announced any more
	default:
		t.kernel.endCalls()
	}
	t.forgetMetadata()
}

// End ends the call streams of all processes. After a shutdown a later collector can resume the
// processes.
func (t *Trace) End(cause callevent.Cause) {
	for _, p := range t.processes {
		p.end(cause)
	}
	if cause == callevent.CauseShutdown {
		return
	}
	for _, p := range t.processes {
		p.objects.clear()
	}
	t.forgetProcesses()
}

// forgetProcesses removes all processes, which have ended.
func (t *Trace) forgetProcesses() {
	for _, p := range t.processes {
		p.removed = true
	}
	t.shared.processes.Add(-int64(len(t.processes)))
	clear(t.processes)
	t.last = nil
}

// Flush delivers the current batches.
func (t *Trace) Flush() {
	for _, p := range t.processes {
		p.calls.Flush()
	}
}

// Records returns the positions of the processes that have not ended.
func (t *Trace) Records() (records []Record) {
	for _, p := range t.processes {
		records = append(records, p.record())
	}
	for _, r := range t.resumed {
		if t.processes[Key{r.Namespace, r.PID}] == nil {
			records = append(records, r)
		}
	}
	return records
}

// Threads returns the known threads of a trace of the kernel.
func (t *Trace) Threads() []ThreadRecord {
	if t.kernel == nil {
		return t.threads
	}
	return t.kernel.records()
}

// Publish reports dropped call events and cut values to the telemetry.
func (t *Trace) Publish() {
	for _, dropped := range [...]struct {
		n      *int64
		reason string
	}{{&t.noProcess, DroppedNoProcess}, {&t.noThread, DroppedNoThread}, {&t.noKey, DroppedNoKey}} {
		if *dropped.n > 0 {
			t.shared.Telemetry.CallEventsDropped(*dropped.n, dropped.reason)
		}
		*dropped.n = 0
	}
	t.shared.Telemetry.CallValuesCut(t.cutValues)
	t.cutValues = 0
}
