// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// chunk is how many call events are decoded at once: few enough to stay in the
// processor's cache.
const chunk = 1024

// dataConnection reads one data connection: it decodes messages, gives call events
// their names, and packs them. It is one goroutine's.
type dataConnection struct {
	run *run
	in  *input
	// batch is nil when no pipeline takes traces: what comes is then read for its
	// markers, and counted.
	batch *batcher
	// events is where call events are decoded to.
	events []bytefrog.Event
	// fresh is how many messages with a number have come since they were counted.
	fresh int
	// position is the number of the call event or marker that it is at.
	position atomic.Uint64
	// came is how many bytes have come.
	came atomic.Uint64
	// waits says that it waits for others that are behind it.
	waits atomic.Bool
	// lead is how far it may be ahead of others in time.
	lead lead
	// reckoning is the one that goes on, if one does.
	reckoning *reckoning
	// counted is how many bytes of its buffers are in the memory of the run.
	counted int
	// ended says that the agent has closed the connection, or that it was lost; lost
	// how it was cut off, if it was.
	ended bool
	lost  error
}

// prepare makes what the connection needs to be read. It is costly, and done only for
// those that could join the run.
func (d *dataConnection) prepare() error {
	r := d.run
	defer d.countBuffers()
	d.events = make([]bytefrog.Event, chunk)
	d.lead.most = r.env.config.Limits.MaxConnectionLeadTime
	if r.handover == nil {
		return nil
	}
	batch, err := newBatcher(r.stream, r.streamID, r.env.config, r.send)
	if err != nil {
		return err
	}
	batch.reckon = d.reckon
	batch.closing = r.awaitControl
	d.batch = batch
	return nil
}

// countBuffers counts what the connection holds beside what its batcher takes.
func (d *dataConnection) countBuffers() {
	held := readerBytes + cap(d.events)*int(unsafe.Sizeof(bytefrog.Event{})) + len(d.in.buf)
	if d.batch != nil {
		held += d.batch.packer.Memory()
	}
	d.counted = d.run.stream.memory.resize(d.counted, held)
}

// serve reads the connection to its end and hands on all that came.
func (d *dataConnection) serve() {
	if d.batch == nil {
		d.readToEnd()
		return
	}
	d.run.handover.SendFrom(func(send func(callevent.Packed, pcommon.Resource)) {
		d.batch.hand = func(batch callevent.Packed) { send(batch, d.run.resource) }
		d.readToEnd()
	})
}

func (d *dataConnection) readToEnd() {
	if d.lost == nil {
		d.read()
	}
	d.run.data.release(d, d.ended || d.lost != nil)
	defer d.run.data.finished.Done()
	d.finish()
	d.batch, d.events, d.in.buf = nil, nil, nil
	d.counted = d.run.stream.memory.resize(d.counted, 0)
	if d.lost != nil {
		d.leaveUnlessKilled()
	}
}

// finish waits for the names that may still come on other connections, and hands on
// the last batch.
func (d *dataConnection) finish() {
	if d.batch == nil {
		return
	}
	ticker := time.NewTicker(pendingPause)
	defer ticker.Stop()
	for len(d.batch.pending.events) > 0 && !d.run.data.complete() {
		select {
		case <-ticker.C:
			d.batch.attend(d.run.env.now())
			continue
		case <-d.run.stream.memory.full:
		case <-d.run.ctx.Done():
		}
		break
	}
	d.finishNow()
	d.batch.release()
}

// finishNow hands on the last batch, whatever names are missing.
func (d *dataConnection) finishNow() {
	now := d.run.env.now()
	if d.run.stream.memory.isFull() {
		d.batch.release()
	}
	d.batch.place(len(d.batch.unplaced.renames), passed{}, now)
	d.batch.settle(now, true)
	d.tellDropped()
	d.batch.flush()
}

// tellDropped counts the events that were dropped because the run's memory is full: the
// data breaks after all that was received.
func (d *dataConnection) tellDropped() {
	if n := d.batch.dropped; n > 0 {
		d.run.env.telemetry.eventsDropped(n, d.run.stream.memory.reason())
		d.run.breakAt(callevent.Point(d.run.stream.next.Load(), callevent.CauseLimit))
		d.batch.dropped = 0
	}
}

// leaveUnlessKilled gives the run up when the connection was cut off and the control
// connection was not: when an agent is killed both are, and the control connection
// says what it was.
func (d *dataConnection) leaveUnlessKilled() {
	timer := time.NewTimer(d.run.env.timing.quiet)
	defer timer.Stop()
	select {
	case <-d.run.leaving:
	case <-timer.C:
		d.run.leave(dataLost(d.lost))
	}
}

// errStop ends the reading of a connection whose run is given up.
var errStop = errors.New("the run is given up")

// read reads the connection to its end, or to what can't be read; what came before
// is then in the batch.
func (d *dataConnection) read() {
	now := d.run.env.now()
	// What came together with data hello.
	if !d.take(0, now) {
		return
	}
	for {
		n, err := d.in.read(now, d.wake(now))
		d.came.Add(uint64(n))
		now = d.run.env.now()
		if n > 0 && !d.take(n, now) {
			return
		}
		if errors.Is(err, errTaken) {
			return
		}
		if err != nil && !timedOut(err) {
			d.end(err)
			return
		}
		if err := d.in.overdue(); err != nil {
			d.giveUp(err)
			return
		}
		d.keepPace()
		if d.batch != nil {
			d.batch.attend(now)
		}
		// That may have taken long.
		now = d.run.env.now()
	}
}

// shortRead is how long a connection is read at least: a read whose time is over brings
// nothing, though something may be there.
const shortRead = time.Millisecond

// wake is when there is something to do though nothing comes, or zero.
func (d *dataConnection) wake(now time.Time) time.Time {
	if d.batch == nil {
		return time.Time{}
	}
	wake := d.batch.wake(now)
	if soon := now.Add(shortRead); !wake.IsZero() && wake.Before(soon) {
		return soon
	}
	return wake
}

// take decodes what has come, n bytes of which are new, and reports whether the
// connection is to be read on.
func (d *dataConnection) take(n int, now time.Time) bool {
	err := d.decode(now)
	if d.fresh > 0 && !d.run.agent.IsPrepared() {
		d.run.agent.SetPrepared()
	}
	d.run.countData(d.fresh, n)
	d.countBuffers()
	d.fresh = 0
	switch {
	case err == nil:
		return true
	case errors.Is(err, errRunMemory):
		d.run.leave(outOfMemory(d.run.stream.memory.why))
	case !errors.Is(err, errStop):
		d.giveUp(err)
	}
	return false
}

// end says what is to be said when the connection ended with err: when it was cut
// off, events are lost.
func (d *dataConnection) end(err error) {
	d.ended = true
	cut := d.in.cut()
	if cut == nil && errors.Is(err, io.EOF) || d.run.isLeaving() {
		return
	}
	if cut != nil {
		err = cut
	}
	d.lost = err
	d.run.breakAt(callevent.Point(d.run.stream.next.Load(), callevent.CauseDisconnected))
}

// giveUp gives the run up for err. What follows on this connection is lost, so the
// data breaks after all that was received.
func (d *dataConnection) giveUp(err error) {
	d.run.env.telemetry.badData(connectionData)
	d.run.breakAt(callevent.Point(d.run.stream.next.Load(), callevent.CauseBadData))
	d.run.leave(givenUpForBadData(connectionData, err))
}

// decode takes all messages that are complete. The error is a *badData,
// errRunMemory or errStop.
func (d *dataConnection) decode(now time.Time) error {
	for {
		if d.run.stream.memory.isFull() {
			return errRunMemory
		}
		events, n := bytefrog.DecodeEvents(d.events, d.in.bytes())
		if events > 0 {
			if err := d.add(d.events[:events], now); err != nil {
				return err
			}
			d.in.take(n)
			if events == len(d.events) {
				continue
			}
		}
		m, n, err := bytefrog.DecodeData(d.in.bytes(), d.run.env.config.Limits.MaxMessageSize)
		if err != nil {
			return d.in.bad(err)
		}
		if n == 0 {
			return nil
		}
		if err := d.handle(m, now); err != nil {
			return err
		}
		d.in.take(n)
	}
}

func (d *dataConnection) add(events []bytefrog.Event, now time.Time) error {
	if d.batch != nil {
		// Before it waits: what renames ask for is there.
		d.batch.passAll(events, now)
	}
	for added := 0; added < len(events); {
		piece := events[added:]
		add := d.count
		if d.batch != nil {
			piece = d.keepTime(piece, now)
			add = d.batch.add
		}
		d.run.settleBreak(piece)
		d.position.Store(unwrapSequence(d.run.stream.next.Load(), piece[len(piece)-1].Sequence))
		bad, err := add(piece, now)
		if err != nil {
			d.fresh += bad
			for _, e := range events[:added+bad] {
				d.in.take(bytefrog.EventSize(e.Type))
			}
			return d.in.bad(err)
		}
		d.fresh += len(piece)
		added += len(piece)
	}
	return nil
}

// count takes events of which nothing but their numbers is wanted, as batcher.add
// does: markers and data breaks are judged by those.
func (d *dataConnection) count(events []bytefrog.Event, _ time.Time) (bad int, err error) {
	s := d.run.stream
	reference := s.next.Load()
	next := reference
	for i, e := range events {
		sequence := unwrapSequence(reference, e.Sequence)
		if !validSequence(sequence) {
			s.advance(next, uint64(i))
			return i, notOfTheRun(sequenceOffset, e.Sequence, reference)
		}
		next = max(next, sequence+1)
	}
	s.advance(next, uint64(len(events)))
	return 0, nil
}

// handle takes a message that is no call event.
func (d *dataConnection) handle(m bytefrog.Message, now time.Time) error {
	switch m := m.(type) {
	case bytefrog.Marker:
		return d.marker(m, now)
	case bytefrog.ErrorMessage:
		d.run.agentError(m)
		return errStop
	}
	if d.batch == nil {
		return nil
	}
	return d.name(m, now)
}

// name takes a map message.
func (d *dataConnection) name(m bytefrog.Message, now time.Time) (err error) {
	names, remapped := d.run.stream.names, false
	switch m := m.(type) {
	case bytefrog.MapMethod:
		remapped, err = names.mapMethod(m.Method, m.Signature)
	case bytefrog.MapException:
		remapped, err = names.mapException(m.Exception, m.Name)
	case bytefrog.MapThreadName:
		from := unwrapTicks(d.run.stream.clock.expected(now), m.Time)
		var first, reused bool
		if first, reused, err = names.mapThread(m.Thread, from, m.Name); err == nil {
			d.batch.rename(unplacedRename{thread: m.Thread, name: m.Name, ticks: from, first: first, reused: reused, since: now})
		}
		if reused {
			d.run.threadReused()
		}
	}
	if remapped {
		d.run.env.telemetry.nameRemapped()
	}
	return err
}

// marker takes a marker: its number is none of a call, and it is a log record.
func (d *dataConnection) marker(m bytefrog.Marker, now time.Time) error {
	s := d.run.stream
	reference := s.next.Load()
	sequence := unwrapSequence(reference, m.Sequence)
	if !validSequence(sequence) {
		return d.in.bad(notOfTheRun(sequenceOffset, m.Sequence, reference))
	}
	ticks := unwrapTicks(s.clock.expected(now), m.Time)
	d.run.suspensions.owed.settle(d.run, sequence)
	d.position.Store(sequence)
	if d.batch != nil {
		d.batch.skip(sequence, ticks, now)
	}
	s.advance(sequence+1, 1)
	d.fresh++
	d.run.logs.marker(m, sequence, ticks)
	return nil
}
