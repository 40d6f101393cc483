// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// attributeText is where spans show a function as the tracer sent it: the name in the
// object's symbol table, or class and method.
const attributeText = "lttng.function"

// Attributes of spans that call records of java.util.logging have.
const (
	attributeArguments   = "lttng.jul.arguments"
	attributeReturnValue = "lttng.jul.return_value"
)

// maxFresh is how many new breaks a batch carries before it is closed: there has to be
// room for those that are older.
const maxFresh = callevent.MaxBarriers / 2

// openPacker makes what a process needs for its first call event.
func (p *process) openPacker() error {
	packer, err := callevent.NewPacker(callevent.Stream{ID: p.id, Resolution: 1, TextKey: attributeText}, p.config.Batch.MaxBytes)
	if err != nil {
		return err
	}
	p.packer = packer
	p.functions, p.lanes = map[string]*function{}, map[uint64]*lane{}
	p.trace.env.telemetry.processes(1)
	return nil
}

// number gives a call event its number.
func (p *process) number() uint64 {
	n := p.next
	p.next++
	return n
}

// annotation is what a call event has beside its function and its lane.
type annotation struct {
	key   string
	value callevent.Value
}

// pack packs a call event of a function in a lane, both of this process, with an
// annotation, or nil.
func (p *process) pack(kind callevent.Kind, sequence uint64, nanos int64, f *function, l *lane, with *annotation) {
	for !p.tryPack(kind, sequence, nanos, f, l, with) {
		// The batch is full, or its times lie too far apart. Any event fits into an
		// empty one.
		p.flush()
		if p.packer.Len() == 0 {
			p.packer.Reset()
		}
	}
	p.first = min(p.first, sequence)
	if p.opened.IsZero() {
		p.opened = p.trace.env.now()
	}
}

func (p *process) tryPack(kind callevent.Kind, sequence uint64, nanos int64, f *function, l *lane, with *annotation) bool {
	generation := p.packer.Generation()
	if l.generation != generation {
		index, ok := p.packer.Lane(l.Lane)
		if !ok {
			return false
		}
		l.index, l.generation = index, generation
	}
	e := callevent.Event{Sequence: sequence, Time: nanos, Lane: l.index, Kind: kind}
	if f != nil {
		if f.generation != generation {
			index, ok := p.packer.Function(&f.Function)
			if !ok {
				return false
			}
			f.index, f.generation = index, generation
		}
		e.Function = f.index
	}
	if with != nil {
		return p.packer.AddWith(&e, with.key, with.value)
	}
	return p.packer.Add(&e)
}

// attend packs addresses that have waited for too long, and hands on what is old
// enough, and word that the process can be heard of.
func (p *process) attend(now time.Time) {
	if p.packer == nil {
		return
	}
	if p.addresses.overdue(now, p.config.NameWait) {
		p.settleAddresses()
	}
	switch {
	case !p.opened.IsZero() && now.Sub(p.opened) >= p.config.Batch.MaxDelay, p.breaks.fresh >= maxFresh:
		p.flush()
	case p.opened.IsZero() && p.breaks.news:
		p.flush()
	case p.opened.IsZero() && now.Sub(p.closed) >= p.config.KeepaliveInterval:
		p.keepAlive()
	}
}

// flush hands on the batch, if there are events in it or breaks that nobody was told
// of, and begins the next.
func (p *process) flush() {
	if p.packer == nil || p.packer.Len() == 0 && !p.breaks.news {
		return
	}
	events := p.packer.Len()
	if batch, ok := p.close(); ok {
		p.trace.env.telemetry.packed(int64(events))
		p.trace.follower.handover.Send(batch, p.frozen())
	}
	p.reset()
}

// keepAlive hands on an empty batch.
func (p *process) keepAlive() {
	if batch, ok := p.close(); ok {
		p.trace.follower.handover.Offer(batch, p.frozen())
	}
	p.reset()
}

// close closes the batch.
func (p *process) close() (callevent.Packed, bool) {
	p.barriers = p.breaks.concerning(p.barriers[:0], min(p.first, p.next), p.next)
	batch, err := p.packer.Close(p.barriers, p.next, p.trace.env.now().UnixNano())
	if err != nil {
		// Nothing that was let in makes a batch impossible; should it be so after all,
		// it costs these events and not the process.
		p.trace.env.telemetry.batchDropped(p.packer.Len(), droppedInvalid)
		return callevent.Packed{}, false
	}
	return batch, true
}

// reset begins the next batch.
func (p *process) reset() {
	p.packer.Reset()
	p.breaks.news, p.breaks.fresh = false, 0
	p.first, p.opened, p.closed = math.MaxUint64, time.Time{}, p.trace.env.now()
}

// end hands on all there is of a process that nothing follows of. With CauseShutdown
// and storage it goes on when the collector does: that is a break.
func (p *process) end(cause callevent.Cause) {
	if p.packer == nil {
		return
	}
	p.settleAddresses()
	p.breaks.finish(p.next)
	if cause == callevent.CauseShutdown && p.config.Storage != nil {
		p.breaks.add(callevent.Point(p.next, cause))
	} else {
		p.breaks.add(callevent.End(p.next, cause))
	}
	p.flush()
	p.forgetNames()
	p.packer = nil
	p.trace.env.telemetry.processes(-1)
}
