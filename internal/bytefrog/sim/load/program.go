// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
)

// Program makes calls. It is a bytefrogagent.Program that can run once.
type Program struct {
	options Options
	made    atomic.Uint64
	truth   *recorder
}

// New returns a program. The error names the invalid option.
func New(o Options) (*Program, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	p := &Program{options: o}
	if o.Record {
		p.truth = &recorder{}
	}
	return p, nil
}

// Made returns the number of call events and markers so far, including lost ones.
func (p *Program) Made() uint64 { return p.made.Load() }

// Truth returns the calls that an HQ has to find in the sent data, after the program has ended. It needs
// Options.Record.
func (p *Program) Truth() Truth { return p.truth.truth() }

// Limits of simultaneous work.
const (
	maxBurst         = 32   // steps of one thread in a row
	burstsPerSecond  = 100  // at least, when there is a rate
	maxOpen          = 4    // buffers that are written alternately
	flushesPerSecond = 10   // at least, when there is a rate
	unseenSteps      = 1000 // steps that the program makes at most while suspended
	// namesRoom is the space for the longest names and a marker.
	namesRoom = 128
)

// Run makes calls until the end in the options.
func (p *Program) Run(t *bytefrogagent.Tracer) error {
	g := newGenerator(p, t)
	err := g.run()
	if errors.Is(err, bytefrogagent.ErrUntraced) {
		g.flush()
		return nil
	}
	return err
}

// generator is a running program.
type generator struct {
	options Options
	choices choices
	tracer  *bytefrogagent.Tracer
	random  *rand.PCG
	threads []thread
	open    []*bytefrogagent.Buffer // nil if none was acquired
	numbers [][]uint64              // of the events in each open buffer; only if recording
	names   []bool                  // whether an open buffer carries names
	methods []bool                  // methods with a name
	failed  [exceptions]bool        // exceptions with a name

	sequence uint64 // the next number
	now      uint32 // the agent's clock, ms
	set      uint32 // the sum of the steps of the clock, ms
	flushed  uint64 // the next number when all buffers were last sent
	suspends int    // by the program's user, so far
	steps    int    // of the clock, so far
	longest  uint64 // burst

	made  *atomic.Uint64
	truth *recorder // nil unless recording
}

func newGenerator(p *Program, t *bytefrogagent.Tracer) *generator {
	o := p.options
	g := &generator{
		options: o,
		choices: newChoices(o),
		tracer:  t,
		random:  rand.NewPCG(o.Seed, 0),
		threads: make([]thread, o.Threads),
		methods: make([]bool, o.Functions),
		longest: maxBurst,
		made:    &p.made,
		truth:   p.truth,
	}
	if o.Rate > 0 {
		g.longest = uint64(min(maxBurst, max(1, o.Rate/burstsPerSecond)))
	}
	for i := range g.threads {
		g.threads[i].id = uint16(i)
	}
	n := min(o.Threads, maxOpen)
	g.open = make([]*bytefrogagent.Buffer, n)
	g.numbers = make([][]uint64, n)
	g.names = make([]bool, n)
	return g
}

// run is the program: bursts of one thread after the other, then every call returns.
func (g *generator) run() error {
	for {
		elapsed := g.tracer.Elapsed()
		if g.ended(elapsed) {
			return g.finish()
		}
		if g.isDue(g.steps, g.options.ClockSteps, elapsed) {
			g.stepClock()
		}
		g.now = uint32(elapsed.Milliseconds()) + g.set
		g.keepRate(elapsed)
		if g.isDue(g.suspends, g.options.Suspends, elapsed) {
			g.suspends++
			g.suspend()
		}
		if err := g.tracer.Proceed(); err != nil {
			if err = g.handleError(err); err != nil {
				return err
			}
			continue
		}
		if err := g.burst(); err != nil {
			if err = g.handleError(err); err != nil {
				return err
			}
		}
		g.made.Store(g.sequence)
	}
}

func (g *generator) ended(elapsed time.Duration) bool {
	return g.options.Events > 0 && g.sequence >= g.options.Events ||
		g.options.Duration > 0 && elapsed >= g.options.Duration
}

// keepRate waits when the program is ahead of its rate, and flushes the buffers regularly. Without a rate buffers fill
// fast enough.
func (g *generator) keepRate(elapsed time.Duration) {
	if g.options.Rate == 0 {
		return
	}
	if period := max(1, g.options.Rate/flushesPerSecond); float64(g.sequence-g.flushed) >= period {
		g.flushed = g.sequence
		g.flush()
	}
	ahead := time.Duration(float64(g.sequence)/g.options.Rate*float64(time.Second)) - elapsed
	if ahead > time.Millisecond {
		g.tracer.Sleep(ahead)
	}
}

// burst makes some steps of one thread, into one buffer.
func (g *generator) burst() error {
	r := g.random.Uint64()
	t := &g.threads[r%uint64(len(g.threads))]
	at := int(r >> 32 % uint64(len(g.open)))
	for steps := 1 + r>>40%g.longest; steps > 0; steps-- {
		if err := g.room(at); err != nil {
			return err
		}
		g.step(t, at)
	}
	return nil
}

// room ensures that buffer at has room for a step.
func (g *generator) room(at int) error {
	b := g.open[at]
	if b != nil {
		if b.Room() >= namesRoom || len(b.Data) == 0 {
			return nil
		}
		g.send(at)
	}
	b, err := g.tracer.Acquire()
	if err != nil {
		return err
	}
	g.open[at] = b
	return nil
}

// send sends a buffer, or drops it.
func (g *generator) send(at int) {
	b := g.open[at]
	g.open[at] = nil
	lost := g.options.Loss > 0 && !g.names[at] && b.Events > 0 &&
		float64(g.random.Uint64()>>11)/(1<<53) < g.options.Loss
	if g.truth != nil {
		if lost {
			g.truth.lose(g.numbers[at])
		}
		g.numbers[at] = g.numbers[at][:0]
	}
	g.names[at] = false
	if lost {
		g.tracer.Discard(b)
		return
	}
	g.tracer.Send(b)
}

// flush sends all open buffers.
func (g *generator) flush() {
	for at, b := range g.open {
		if b != nil && len(b.Data) > 0 {
			g.send(at)
		}
	}
}

// finish lets every call return, alternately.
func (g *generator) finish() error {
	for i := range g.threads {
		t := &g.threads[i]
		t.leaving = 0
		for len(t.stack) > 0 {
			at := i % len(g.open)
			err := g.tracer.Proceed()
			if err == nil {
				err = g.room(at)
			}
			if err == nil {
				g.leave(t, at)
			} else if err = g.handleError(err); err != nil {
				return err
			}
		}
	}
	g.made.Store(g.sequence)
	g.flush()
	return nil
}

// obey handles an error of the tracer. If the HQ suspended the agent, the program makes unseen calls.
func (g *generator) handleError(err error) error {
	for errors.Is(err, bytefrogagent.ErrSuspended) {
		g.suspend()
		err = g.tracer.AwaitUnsuspend()
	}
	return err
}

// isDue reports whether the next of `all` evenly spread actions is due after `done` of them.
func (g *generator) isDue(done, all int, elapsed time.Duration) bool {
	if done >= all {
		return false
	}
	var part float64
	if g.options.Events > 0 {
		part = float64(g.sequence) / float64(g.options.Events)
	} else {
		part = float64(elapsed) / float64(g.options.Duration)
	}
	return part >= float64(done+1)/float64(all+1)
}

// stepClock sets the agent's clock. Calls that are open across a step have no known duration.
func (g *generator) stepClock() {
	const hour = uint32(time.Hour / time.Millisecond)
	if g.set == 0 {
		g.set = hour
	} else {
		g.set = 0
	}
	g.steps++
	if g.truth != nil {
		g.truth.clockSet(g.sequence)
	}
}

// suspend reports the break and makes some unseen calls without numbers.
func (g *generator) suspend() {
	g.flush()
	g.tracer.Break(uint32(g.sequence))
	if g.truth != nil {
		g.truth.suspended(g.sequence)
	}
	for range g.random.Uint64() % unseenSteps {
		r := g.random.Uint64()
		g.unseen(&g.threads[r%uint64(len(g.threads))], r>>32)
	}
}

// event appends a call event.
func (g *generator) event(at int, t *thread, kind bytefrog.MessageType, method, exception uint32, line uint16) {
	b := g.open[at]
	b.Data = bytefrog.AppendEvent(b.Data, bytefrog.Event{
		Type:      kind,
		Time:      g.now,
		Sequence:  uint32(g.sequence),
		Method:    method,
		Exception: exception,
		Line:      line,
		Thread:    t.id,
	})
	g.counted(at)
}

// counted counts a used number of a buffer.
func (g *generator) counted(at int) {
	g.open[at].Events++
	if g.truth != nil {
		g.numbers[at] = append(g.numbers[at], g.sequence)
	}
	g.sequence++
}
