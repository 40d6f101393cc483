// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
)

// Options configure a replay.
type Options struct {
	// Speed is the factor of the captured speed; 0 is as fast as the HQ reads.
	Speed float64
	// Shuffle changes the order of buffers, each within its window, by Seed.
	Shuffle bool
	Seed    uint64
	// Window is the number of buffers that are shuffled together; 0 means all.
	Window int
	// Repeat is the number of rounds; 0 means one.
	Repeat int
}

// DefaultWindow is the number of 8 KiB buffers that are about as far out of order as those of real agents: 130,000
// events.
const DefaultWindow = 256

// maxLead is how far times may be ahead of the clock before rounds are compressed.
const maxLead = 10 * time.Second

// Program replays a recording. It is a bytefrogagent.Program that can run once.
type Program struct {
	recording *Recording
	options   Options
}

// New returns a program that makes the calls of a recording.
func New(r *Recording, o Options) *Program {
	o.Repeat = max(1, o.Repeat)
	return &Program{recording: r, options: o}
}

// Events returns the number of call events and markers that are sent without a suspension.
func (p *Program) Events() uint64 { return p.recording.events * uint64(p.options.Repeat) }

// Calls returns the number of method entries that are sent without a suspension.
func (p *Program) Calls() uint64 { return p.recording.calls * uint64(p.options.Repeat) }

// Run replays the recording.
func (p *Program) Run(t *bytefrogagent.Tracer) error {
	pl := &player{tracer: t, speed: p.options.Speed, times: clock{scale: 1}}
	items := plan(p.recording, t.BufferSize(), p.options)
	for round := range p.options.Repeat {
		if round > 0 {
			pl.nextRound(p.recording)
			items = withoutClasses(items)
		}
		if err := pl.play(items); err != nil {
			if errors.Is(err, bytefrogagent.ErrUntraced) {
				return nil
			}
			return err
		}
	}
	return nil
}

// withoutClasses returns the items of later rounds: classes are transformed once.
func withoutClasses(items []item) []item {
	var kept []item
	for _, it := range items {
		if _, isClass := it.report.(bytefrog.ClassReport); !isClass {
			kept = append(kept, it)
		}
	}
	return kept
}

// player plays one round after the other. Numbers inside a round are the capture's; `number` is the difference to the
// numbers of the replay.
type player struct {
	tracer *bytefrogagent.Tracer
	speed  float64

	number uint32 // added to the numbers of the round, modulo 2^32
	times  clock
	begin  time.Duration // of the round, on the agent's clock

	top   uint32 // the highest sent number of the round, plus 1
	floor uint32 // lower numbers of the round were omitted
}

// nextRound continues the numbers and times after the last round.
func (p *player) nextRound(r *Recording) {
	now := p.tracer.Elapsed()
	p.number += r.numbers
	p.times.offset = uint64(p.times.convert(r.lastTime)) + 1
	p.times.scale = 1
	took := now - p.begin
	lead := time.Duration(p.times.offset)*time.Millisecond - now
	if captured := time.Duration(r.lastTime) * time.Millisecond; p.speed == 0 && lead > maxLead && took < captured {
		p.times.scale = float64(took) / float64(captured)
	}
	if p.speed > 0 {
		p.begin += time.Duration(float64(r.duration) / p.speed)
	} else {
		p.begin = now
	}
	p.top, p.floor = 0, 0
	p.tracer.Break(p.number)
}

// play sends the items of one round.
func (p *player) play(items []item) error {
	for len(items) > 0 {
		it := items[0]
		if err := p.awaitTurn(it); err != nil && !errors.Is(err, bytefrogagent.ErrSuspended) {
			return err
		}
		if it.report != nil {
			p.report(it.report)
			items = items[1:]
			continue
		}
		b, err := p.tracer.Acquire()
		switch {
		case err == nil:
			p.send(b, it)
			items = items[1:]
		case errors.Is(err, bytefrogagent.ErrSuspended):
			if items, err = p.suspended(items); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

// awaitTurn waits for the item's time.
func (p *player) awaitTurn(it item) error {
	if p.speed > 0 {
		due := p.begin + time.Duration(float64(it.at)/p.speed)
		for err := p.tracer.Proceed(); ; err = p.tracer.Proceed() {
			wait := due - p.tracer.Elapsed()
			if err != nil || wait <= 0 {
				return err
			}
			p.tracer.Sleep(wait)
		}
	}
	return nil
}

func (p *player) send(b *bytefrogagent.Buffer, it item) {
	if p.number == 0 && p.times.offset == 0 {
		b.Data = append(b.Data, it.piece...)
	} else {
		b.Data = appendMoved(b.Data, it.piece, p.number, p.times)
	}
	b.Events = it.events
	p.top = max(p.top, it.top)
	p.tracer.Send(b)
}

// report sends a control message, with the number of a break converted to the replay's.
func (p *player) report(m bytefrog.Message) {
	if b, isBreak := m.(bytefrog.DataBreak); isBreak {
		p.tracer.Break(max(b.Sequence, p.floor) + p.number)
		return
	}
	p.tracer.Report(m)
}

// suspended handles a suspend: it reports the break, sends the events before it, waits for unsuspend, and returns the
// remaining items.
func (p *player) suspended(items []item) ([]item, error) {
	next := max(p.top, p.floor)
	before, after := split(items, next)
	err := bytefrogagent.ErrSuspended
	for errors.Is(err, bytefrogagent.ErrSuspended) {
		p.tracer.Break(next + p.number)
		for ; len(before) > 0; before = before[1:] {
			b, err := p.tracer.AcquireSuspended()
			if err != nil {
				return nil, err
			}
			p.send(b, before[0])
		}
		err = p.tracer.AwaitUnsuspend()
	}
	if err != nil || p.speed == 0 {
		return after, err
	}
	resume := p.madeMeanwhile(after, next)
	p.number -= resume - next
	p.floor = resume
	return leaveOut(after, resume), nil
}

// madeMeanwhile returns the first number from next on that the program has not reached yet.
func (p *player) madeMeanwhile(items []item, next uint32) uint32 {
	now := uint64(float64((p.tracer.Elapsed()-p.begin)/time.Millisecond) * p.speed)
	made := next
	for _, it := range items {
		each(it.piece, func(m message) {
			if m.numbered && uint64(m.time) <= now {
				made = max(made, m.sequence+1)
			}
		})
	}
	return made
}
