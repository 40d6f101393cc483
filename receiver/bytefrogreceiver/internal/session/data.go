// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"io"
	"os"
	"runtime"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/pace"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// chunk is how many call events are decoded together: they stay in the cache of the CPU.
const chunk = 1024

// readerBytes is the approximate memory of a data connection without its buffers, such as the stack of
// the coroutine that reads it.
const readerBytes = 8 << 10

// dataConnection reads one data connection: it decodes messages, finds the names of call events, and
// packs them. It is for one goroutine.
type dataConnection struct {
	run *run
	in  *connreader.Reader
	// batch is nil if no pipeline takes traces. Then only markers and numbers of the data are used.
	batch *stream.Packer
	// events is the buffer of decoded call events.
	events []bytefrog.Event
	// fresh is how many messages with a number have arrived since they were counted.
	fresh int
	// member makes the connection wait for others of the run that are behind.
	member  *pace.Member
	waiting pace.Waiting
	// backlog is all data that the agent can have sent on other connections before the time asked. Names
	// are given up after it was processed.
	backlog *pace.Backlog
	asked   time.Time
	// counted is how many bytes of the connection's buffers are in the memory of the run.
	counted int
	// ended: the agent has closed the connection, or it was lost. lost is the error of a lost one.
	ended bool
	lost  error
}

// prepare makes buffers and a packer. It is costly, so only connections that have joined the run
// get them.
func (d *dataConnection) prepare() error {
	r := d.run
	defer d.countBuffers()
	d.events = make([]bytefrog.Event, chunk)
	d.member = r.pace.NewMember(d.in.CaughtUp)
	d.in.OnWait(d.member.MayBeIdle)
	d.waiting = d.whileAhead()
	if r.batches.isOpen() {
		batch, err := stream.NewPacker(r.stream, r.batches.send, r.control.awaitCaughtUp, d.awaitNames, d.wakeUp)
		if err != nil {
			return err
		}
		d.batch = batch
	}
	d.member.Join()
	return nil
}

// countBuffers counts the buffers of the connection and of its packer.
func (d *dataConnection) countBuffers() {
	held := readerBytes + cap(d.events)*int(unsafe.Sizeof(bytefrog.Event{})) + d.in.Size()
	if d.batch != nil {
		held += d.batch.Memory()
	}
	d.counted = d.run.Memory.Resize(d.counted, held)
}

// serve reads the connection to its end, and sends all received data.
func (d *dataConnection) serve() {
	if d.batch == nil {
		d.readToEnd()
		return
	}
	d.run.batches.SendFrom(func(send func(callevent.Packed, pcommon.Resource)) {
		d.batch.SetSend(func(batch callevent.Packed) { d.run.batches.sendBy(send, batch) })
		d.readToEnd()
	})
}

func (d *dataConnection) readToEnd() {
	if d.lost == nil {
		d.read()
	}
	d.run.data.release(d.in, d.ended || d.lost != nil)
	d.member.Leave()
	defer d.run.data.finished.Done()
	d.finish()
	d.in.Free()
	d.batch, d.events = nil, nil
	d.counted = d.run.Memory.Resize(d.counted, 0)
	if d.lost != nil {
		d.leaveUnlessKilled()
	}
}

// finish waits for names that may still arrive on other connections, and sends the last batch.
func (d *dataConnection) finish() {
	if d.batch == nil {
		return
	}
	d.awaitLastNames()
	d.finishNow()
	d.batch.Release()
}

// awaitLastNames waits until no event waits for names, or until no name can arrive any more. The
// other connections wake it when they have received a name, and when they end.
func (d *dataConnection) awaitLastNames() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed := d.run.pace.NextChange()
		now := d.run.env.Receiver.Now()
		d.batch.Attend(now)
		if d.batch.Waiting() == 0 || d.run.data.complete() {
			return
		}
		timer.Stop()
		if wake := d.wake(now); !wake.IsZero() {
			timer.Reset(wake.Sub(now))
		}
		select {
		case <-changed:
		case <-timer.C: // the names of an event are given up, or a batch is old
		case <-d.run.Memory.Full():
			return
		case <-d.run.ctx.Done():
			return
		}
	}
}

// finishNow sends the last batch, even if names are missing.
func (d *dataConnection) finishNow() {
	d.batch.Settle(d.run.env.Receiver.Now())
	d.countDropped()
	d.batch.Flush()
}

// countDropped counts events that were dropped because the run's memory is full. The data breaks
// after all received numbers.
func (d *dataConnection) countDropped() {
	if n := d.batch.TakeDropped(); n > 0 {
		d.run.env.Telemetry.EventsDropped(n, memoryReason(d.run.Memory))
		d.run.breaks.addHere(callevent.CauseLimit)
	}
}

// leaveUnlessKilled ends the run if the connection was lost and the control connection was not. If an
// agent is killed, both are lost, and the reader of the control connection ends the run.
func (d *dataConnection) leaveUnlessKilled() {
	timer := time.NewTimer(d.run.env.Timing.Quiet)
	defer timer.Stop()
	select {
	case <-d.run.life.leaving:
	case <-timer.C:
		d.run.life.leave(dataLost(d.lost))
	}
}

// errStop ends the reading of a connection after an error message of the agent.
var errStop = errors.New("the agent has reported an error")

// longestTurn is the time after which a connection lets other goroutines run. Go interrupts a goroutine after 10 ms, so with
// many agents at full speed a page of a second would need ten. With a much shorter turn, pages would take the time of agents.
const longestTurn = time.Millisecond

// read reads the connection to its end, or to unreadable data. All earlier data is in the batch
// then.
func (d *dataConnection) read() {
	now := d.run.env.Receiver.Now()
	// Some data may have arrived together with data hello.
	if !d.process(0, now) {
		return
	}
	turn := now
	for {
		n, err := d.in.Read(now, d.wake(now))
		d.member.Arrived(n)
		now = d.run.env.Receiver.Now()
		if n > 0 && !d.process(n, now) {
			return
		}
		if now.Sub(turn) >= longestTurn {
			runtime.Gosched()
			turn = now
		}
		if errors.Is(err, connreader.ErrTaken) {
			return
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			d.end(err)
			return
		}
		if err := d.in.Overdue(); err != nil {
			d.giveUp(err)
			return
		}
		if d.batch != nil {
			d.batch.Attend(now)
		}
		// Attend may take long.
		now = d.run.env.Receiver.Now()
	}
}

// shortRead is the shortest time of a read: a read after its deadline returns nothing, even if data
// has arrived.
const shortRead = time.Millisecond

// wakeUp makes the connection call Attend, also while it is read or waits for others. Any goroutine may call it.
func (d *dataConnection) wakeUp() {
	d.in.Wake()
	d.run.pace.Changed()
}

// wake returns when Attend has something to do, even if no data arrives, or zero.
func (d *dataConnection) wake(now time.Time) time.Time {
	if d.batch == nil {
		return time.Time{}
	}
	wake := d.batch.Wake(now)
	if soon := now.Add(shortRead); !wake.IsZero() && wake.Before(soon) {
		return soon
	}
	return wake
}

// process decodes the received data, n bytes of which are new. It reports whether the connection
// should be read further.
func (d *dataConnection) process(n int, now time.Time) bool {
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
	case errors.Is(err, stream.ErrMemory):
		d.run.life.leave(OutOfMemory(d.run.Memory.Reason()))
	case !errors.Is(err, errStop):
		d.giveUp(err)
	}
	return false
}

// end notes that the connection has ended with err. If it was lost, the data breaks.
func (d *dataConnection) end(err error) {
	d.ended = true
	cut := d.in.Cut()
	if cut == nil && errors.Is(err, io.EOF) || d.run.life.isLeaving() {
		return
	}
	if cut != nil {
		err = cut
	}
	d.lost = err
	d.run.breaks.addHere(callevent.CauseDisconnected)
}

// giveUp ends the run because of err. Further data of this connection is lost, so the data breaks after
// all received numbers.
func (d *dataConnection) giveUp(err error) {
	d.run.breaks.addHere(callevent.CauseBadData)
	d.run.badData(telemetry.ConnectionData, err)
}

// decode handles all complete messages. The error is a *connreader.BadData, stream.ErrMemory or errStop.
func (d *dataConnection) decode(now time.Time) error {
	for {
		if d.run.Memory.IsFull() {
			return stream.ErrMemory
		}
		events, n := bytefrog.DecodeEvents(d.events, d.in.Bytes())
		if events > 0 {
			if err := d.pack(d.events[:events], now); err != nil {
				return err
			}
			d.in.Consume(n)
			if events == len(d.events) {
				continue
			}
		}
		m, n, err := bytefrog.DecodeData(d.in.Bytes(), d.run.env.Settings.MaxMessageSize)
		if err != nil {
			return d.in.BadData(err)
		}
		if n == 0 {
			return nil
		}
		if err := d.handle(m, now); err != nil {
			return err
		}
		d.in.Consume(n)
	}
}

// pack packs events, in pieces if other connections are behind.
func (d *dataConnection) pack(events []bytefrog.Event, now time.Time) error {
	for added := 0; added < len(events); {
		piece := events[added:]
		do := d.count
		if d.batch != nil {
			began := d.run.env.Receiver.Now()
			piece = d.member.Await(piece, &d.waiting)
			d.run.heldUp.ended(began, d.run.env.Receiver.Now())
			do = d.batch.Pack
		}
		d.run.breaks.settleBefore(piece)
		d.member.MoveTo(bytefrog.Unwrap(d.run.stream.Next(), piece[len(piece)-1].Sequence))
		bad, err := do(piece, now)
		if err != nil {
			d.fresh += bad
			for _, e := range events[:added+bad] {
				d.in.Consume(bytefrog.EventSize(e.Type))
			}
			return d.in.BadData(err)
		}
		d.fresh += len(piece)
		added += len(piece)
		d.run.pace.Changed()
	}
	return nil
}

// whileAhead returns how the connection waits while others are behind it. It is not read, but names and
// old batches do not wait. An agent that is being disconnected has sent more than was read, so
// that ends no wait.
func (d *dataConnection) whileAhead() pace.Waiting {
	return pace.Waiting{
		Now: func() time.Time { return d.run.env.Receiver.Now() }, Attend: d.attendUnread,
		Stop: d.in.Taken(), Full: d.run.Memory.Full(), Cancelled: d.run.ctx.Done(),
	}
}

func (d *dataConnection) attendUnread(now time.Time) time.Time {
	d.batch.Attend(now)
	return d.batch.Wake(now)
}

// awaitNames reports whether the names of events can no longer arrive, for events that had waited long
// enough when it was first asked: each other connection of the run has handled all that the agent can have
// sent until then, this connection waits for none, and the agent had time to send after it was held up.
func (d *dataConnection) awaitNames(now time.Time) stream.NameWait {
	if d.backlog == nil {
		d.backlog, d.asked = d.member.OthersBacklog(), now
		if !d.backlog.IsHandled() {
			d.backlog.WakeWhenHandled(d.wakeUp)
		}
	}
	if !d.backlog.IsHandled() || d.member.Waits() {
		return stream.NameWait{}
	}
	if recovered := d.run.heldUp.recovered(d.asked); now.Before(recovered) {
		return stream.NameWait{Again: recovered}
	}
	d.backlog = nil
	return stream.NameWait{Over: true, Begun: d.asked}
}

// count counts events that are not packed: the numbers of markers and data breaks are relative to them.
func (d *dataConnection) count(events []bytefrog.Event, _ time.Time) (bad int, err error) {
	return d.run.stream.Count(events)
}

// handle handles a message that is no call event.
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
	return d.batch.Name(m, now)
}

// marker makes a log record of a marker. Its number is not that of a call event.
func (d *dataConnection) marker(m bytefrog.Marker, now time.Time) error {
	s := d.run.stream
	sequence, err := s.Sequence(m.Sequence, stream.SequenceOffset)
	if err != nil {
		return d.in.BadData(err)
	}
	ticks := s.Ticks(m.Time, now)
	d.run.breaks.settle(sequence)
	d.member.MoveTo(sequence)
	if d.batch != nil {
		d.batch.Skip(sequence, ticks, now)
	}
	s.Advance(sequence+1, 1)
	d.fresh++
	d.run.Records.Marker(m, sequence, s.Time(ticks))
	return nil
}
