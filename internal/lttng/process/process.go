// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callstream"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// Process is a traced process. Its call events are one call stream. Call events with an address as function wait
// until the list of objects is complete. They keep their sequence numbers. The group's goroutine uses it.
type Process struct {
	Origin
	shared *shared
	key    Key
	// begun is the Unix time of the first event in nanoseconds. It distinguishes processes with the
	// same key. seen is the time of the last event.
	begun, seen int64
	// removed is set when the process is no longer that of its key. replaced is set if the process of its key executes
	// another program.
	removed, replaced bool
	// threads is the number of threads of a kernel trace whose calls are in the call stream.
	threads int

	calls   *callstream.Stream
	names   nameTable
	objects objectList
	dump    stateDump

	waiting []waitingCall
	// waitingSince is the arrival time of the first of them.
	waitingSince time.Time
}

// stateDump is how far a process has recorded its state.
type stateDump struct {
	// begun is set if the process began to record its state, last at the time begunAt.
	begun   bool
	begunAt int64
	// listed is set if the list of objects is complete, givenUp if calls no longer wait for it.
	listed, givenUp bool
	// program is the name in the latest dump.
	program string
	// againAt is when the dump began again, and againFrom the number of the first call event since
	// then.
	againAt   int64
	againFrom uint64
}

// waitingCall is a call event that waits for the name of its function.
type waitingCall struct {
	sequence uint64
	nanos    int64
	address  uint64
	// site is the call site, or 0 if it is not recorded.
	site uint64
	lane *lane
	kind callevent.Kind
}

// Attributes of the spans of call records of java.util.logging.
const (
	AttributeArguments   = "lttng.jul.arguments"
	AttributeReturnValue = "lttng.jul.return_value"
)

// AttributeText is the span attribute with a function's name as LTTng recorded it: the name in the
// object's symbol table, or class and method.
const AttributeText = "lttng.function"

// Record is the position of a call stream. A collector continues the stream from it.
type Record struct {
	Namespace int64  `json:"namespace,omitempty"`
	PID       int64  `json:"pid"`
	Begun     int64  `json:"begun"`
	Next      uint64 `json:"next"`
	Program   string `json:"program,omitempty"`
	// Objects are the loaded objects, if the list was complete.
	Objects []symbols.Mapping `json:"objects,omitempty"`
}

// newProcess returns a process of a trace. next is the number of its first call event.
func newProcess(s *shared, trace string, key Key, begun int64, next uint64) *Process {
	p := &Process{
		Origin: Origin{
			Settings: s.Settings, ID: StreamID(trace, s.host, key, begun),
			Host: s.host, Session: s.session, PID: key.pid, HasPID: key != machineKey,
		},
		shared: s, key: key, begun: begun,
		objects: objectList{shared: s},
	}
	p.names = nameTable{shared: s, forgetAll: p.forgetNames}
	p.calls = callstream.New(&s.Calls, p, next)
	if s.Files != nil {
		p.objects.loaded = symbols.NewObjects(s.Files, symbols.DefaultMaxObjects)
	}
	return p
}

// SendBatch delivers a batch.
func (p *Process) SendBatch(batch callevent.Packed, events int) {
	p.shared.Telemetry.CallEventsPacked(int64(events))
	p.shared.batches.Send(batch, p.Resource())
}

// OfferBatch delivers an empty batch.
func (p *Process) OfferBatch(batch callevent.Packed) { p.shared.batches.Offer(batch, p.Resource()) }

// DropBatch counts an impossible batch.
func (p *Process) DropBatch(events int) { p.shared.Telemetry.BatchDropped(events, DroppedInvalid) }

// open prepares the process for its first call event.
func (p *Process) open() error {
	if err := p.calls.Open(p.ID); err != nil {
		return err
	}
	p.names.open()
	p.shared.Telemetry.CallStreams(1)
	return nil
}

// lane returns the lane of an ID. Calls that wait may refer to it by its last name.
func (p *Process) lane(id uint64, name []byte) *lane {
	return p.names.lane(id, name, len(p.waiting) > 0)
}

// function returns the function at an address.
func (p *Process) function(address uint64) *callstream.Function {
	return p.names.at(address, p.objects.loaded)
}

// pack packs a call event with the next number. Function and details may be nil.
func (p *Process) pack(kind callevent.Kind, nanos int64, f *callstream.Function, l *lane, with *callstream.Details) {
	p.calls.Pack(kind, p.calls.AssignNumber(), nanos, f, &l.Lane, with)
}

// packAddress packs a call event with an address as function and with its call site. If mayWait, the event waits for
// an incomplete list of objects.
func (p *Process) packAddress(kind callevent.Kind, nanos int64, address, site uint64, l *lane, mayWait bool) {
	c := waitingCall{sequence: p.calls.AssignNumber(), nanos: nanos, address: address, site: site, lane: l, kind: kind}
	if p.dump.listed || p.dump.givenUp || !mayWait {
		p.packNamed(&c)
		return
	}
	if len(p.waiting) == 0 {
		p.waitingSince = p.shared.Now()
	}
	p.waiting = append(p.waiting, c)
	p.shared.waiting++
	if nanos-p.waiting[0].nanos >= int64(p.shared.NameWait) {
		p.packWaiting()
	}
	if p.shared.waiting >= p.shared.Limits.WaitingEvents {
		p.shared.waitingFull()
	}
}

// packWaiting packs the calls that wait, with the names that are known now. No later call waits.
func (p *Process) packWaiting() {
	waiting := p.removeWaiting()
	if len(waiting) == 0 {
		return
	}
	p.dump.givenUp = true
	for i := range waiting {
		p.packNamed(&waiting[i])
	}
}

// packNamed packs a call event with the function at its address.
func (p *Process) packNamed(c *waitingCall) {
	f := p.function(c.address)
	if c.site != 0 && p.names.hasSizes {
		open := c.lane.open
		switch {
		case c.kind != callevent.KindEnter:
			open.exit(c.address)
		case open.isFull() || !open.isExpected(c.site):
			if caller := p.follow(c, f); caller != nil {
				p.calls.PackFrom(c.sequence, c.nanos, f, caller, &c.lane.Lane)
				return
			}
		default:
			open.enter(c.address, c.site, f.Size)
		}
	}
	p.calls.Pack(c.kind, c.sequence, c.nanos, f, &c.lane.Lane, nil)
}

// follow adds the call of f to the open calls of its thread. If the call site shows that calls above its caller have
// ended without an exit, follow returns the caller's function, otherwise nil.
func (p *Process) follow(c *waitingCall, f *callstream.Function) (caller *callstream.Function) {
	open := c.lane.open
	if !open.isExpected(c.site) {
		if i := open.caller(c.address, c.site, p.names.around(c.site, p.objects.loaded)); i >= 0 {
			caller = p.endAbove(open, i)
		}
	}
	if open.isFull() {
		p.names.hold(open.grow())
	}
	open.enter(c.address, c.site, f.Size)
	return caller
}

// endAbove removes the open calls above call i, and returns its function. It does nothing and returns nil if a call
// above has the same name, because pairing finds calls by name.
func (p *Process) endAbove(open *openCalls, i int) *callstream.Function {
	caller := p.function(open.calls[i].function)
	for _, above := range open.calls[i+1:] {
		if p.function(above.function).Function == caller.Function {
			return nil
		}
	}
	open.calls = open.calls[:i+1]
	return caller
}

// removeWaiting returns the calls that wait, and removes them.
func (p *Process) removeWaiting() []waitingCall {
	waiting := p.waiting
	p.waiting = nil
	p.shared.waiting -= len(waiting)
	return waiting
}

// applyState applies an event of the tracer to the state of the process. It returns false if a state
// dump shows that another process has the key now.
func (p *Process) applyState(e *mapping.StateEvent, v *ctf.Values) (same bool) {
	if e.Kind == mapping.StateName {
		p.setProgram(e.ProcessName(v))
	}
	if p.objects.loaded == nil {
		return true
	}
	var err error
	switch e.Kind {
	case mapping.StateBegin:
		p.dump.listed, p.dump.givenUp = false, false
	case mapping.StateEnd:
		return p.endDump()
	case mapping.StateLoad:
		err = p.load(e.Object(v))
	case mapping.StateBuildID:
		err = p.setBuildID(e.Base(v), e.BuildID(v))
	case mapping.StateDebugLink:
		name, crc := e.DebugLink(v)
		err = p.objects.setDebugLink(e.Base(v), name, crc)
	case mapping.StateUnload:
		p.unload(e.Base(v))
	}
	if err != nil {
		p.shared.logger.Debug("An event about an object of a process cannot be used", zap.Int64("pid", p.PID), zap.Error(err))
	}
	return true
}

// setProgram sets the name of the process, unless data was delivered with another one.
func (p *Process) setProgram(name []byte) {
	if len(name) > 0 {
		p.dump.program = callevent.Name(name)
		if !p.made {
			p.program = p.dump.program
		}
	}
}

func (p *Process) load(m symbols.Mapping) error {
	if m.Seen == 0 {
		m.Seen = p.seen
	}
	p.names.forgetAddresses()
	return p.objects.load(m)
}

func (p *Process) unload(base uint64) {
	p.names.forgetAddresses()
	p.objects.unload(base)
}

func (p *Process) setBuildID(base uint64, id []byte) error {
	err := p.objects.setBuildID(base, id)
	if err == nil {
		p.names.forgetAddresses()
	}
	return err
}

// beginDumpAgain begins another state dump of a process. It returns false if the process has no complete list of
// objects to compare.
//
// Either tracing was stopped and started, or another process has the same ID now. The addresses of the objects
// distinguish these: systems load the objects of each process at other addresses, and reuse an ID only after many
// others. Otherwise two processes with the same program become one, with a break between them.
func (p *Process) beginDumpAgain(nanos int64) bool {
	if !p.dump.listed || len(p.objects.recorded) == 0 {
		return false
	}
	p.objects.beginAgain()
	p.dump.begunAt, p.dump.againAt, p.dump.againFrom, p.dump.program = nanos, nanos, p.calls.Next(), ""
	if !p.calls.IsBroken() && p.calls.IsOpen() {
		p.calls.BreakHere(callevent.CauseSuspended)
	}
	return true
}

// endDump completes the list of objects. It returns false if a repeated dump lists the objects of
// another process.
func (p *Process) endDump() (same bool) {
	if len(p.objects.previous) > 0 {
		if !p.objects.isSameAsPrevious() {
			return false
		}
		p.objects.dropPrevious()
		p.names.forgetAddresses()
	}
	p.dump.listed = true
	p.packWaiting()
	return true
}

// packInherited packs waiting calls of the previous process with this key, because they belong to this one.
func (p *Process) packInherited(waiting []waitingCall) {
	if len(waiting) == 0 {
		return
	}
	if err := p.open(); err != nil {
		p.shared.logCannotPack(err)
		return
	}
	for i := range waiting {
		w := &waiting[i]
		p.pack(w.kind, w.nanos, p.function(w.address), p.lane(w.lane.ID, []byte(w.lane.Name)), nil)
	}
}

// restoreObjects loads a complete list of objects.
func (p *Process) restoreObjects(objects []symbols.Mapping) {
	if p.objects.loaded == nil || len(objects) == 0 {
		return
	}
	for _, m := range objects {
		// Each was loaded before. The list logs an object that has no room.
		_ = p.load(m)
	}
	p.dump.listed = true
}

// record returns the position of the call stream.
func (p *Process) record() Record {
	r := Record{Namespace: p.key.namespace, PID: p.key.pid, Begun: p.begun, Next: p.calls.Next(), Program: p.program}
	if p.dump.listed {
		r.Objects = slices.Clone(p.objects.recorded)
	}
	return r
}

// deliverDue packs calls that have waited long enough, and delivers the batch if it is due.
func (p *Process) deliverDue(now time.Time) {
	if !p.calls.IsOpen() {
		return
	}
	if len(p.waiting) > 0 && now.Sub(p.waitingSince) >= p.shared.NameWait {
		p.packWaiting()
	}
	p.calls.DeliverDue(now)
}

// forgetNames packs the calls that wait, and forgets all names.
func (p *Process) forgetNames() {
	p.packWaiting()
	p.names.clear()
}

// end delivers the rest of the call stream. If a later collector continues after a shutdown, the
// stream has a break instead of an end.
func (p *Process) end(cause callevent.Cause) {
	if !p.calls.IsOpen() {
		return
	}
	p.packWaiting()
	p.calls.Close(cause, cause == callevent.CauseShutdown && p.shared.Resumes)
	p.forgetNames()
	p.shared.Telemetry.CallStreams(-1)
}

// freeMemory frees everything except the current batch.
func (p *Process) freeMemory() {
	p.objects.clear()
	if waiting := p.removeWaiting(); len(waiting) > 0 {
		p.shared.Telemetry.CallEventsDropped(int64(len(waiting)), DroppedMemory)
		p.calls.BreakSince(waiting[0].sequence, callevent.CauseLimit)
	}
	p.names.clear()
	p.names = nameTable{shared: p.shared, forgetAll: p.forgetNames}
	p.dump, p.objects = stateDump{}, objectList{shared: p.shared}
}
