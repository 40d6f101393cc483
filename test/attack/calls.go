// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
)

// Calls are Bytefrog agents whose calls need much memory where calls are summed by function and by path. All
// calls of an agent are in one trace, which does not end.
type Calls struct {
	Endpoint string
	// Agents is the number of simultaneous agents: a fourth of them of each kind. Events is the number of
	// events of each.
	Agents, Events int

	started, calls, turnedAway atomic.Int64
}

// The kinds of agents.
const (
	// newFunctions calls each function once.
	newFunctions = iota
	// newPaths calls a few functions, nearly always on a path that is new.
	newPaths
	// newFrames enters functions and does not leave them.
	newFrames
	// longNames calls each function once, and the functions have the longest names.
	longNames
	kinds
)

// Attack runs all agents.
func (n *Calls) Attack(ctx context.Context) error {
	together(n.Agents, func(turn int) {
		if !pause(ctx, time.Duration(turn)*apart) {
			return
		}
		program := &callsProgram{Calls: n, kind: turn % kinds, turn: turn, random: rand.New(rand.NewPCG(uint64(turn), 0))}
		agent := bytefrogagent.New(bytefrogagent.Options{
			Endpoint: n.Endpoint, ConnectTimeout: 10 * time.Second, BufferSize: 1 << 17, DataConnections: 1,
		}, program)
		n.started.Add(1)
		if result := agent.Run(ctx); ctx.Err() == nil && result.Outcome != bytefrogagent.Completed {
			n.turnedAway.Add(1)
		}
	})
	return nil
}

// Sent returns the number of calls.
func (n *Calls) Sent() string {
	return fmt.Sprintf("%d agents, %d calls, %d agents refused", n.started.Load(), n.calls.Load(), n.turnedAway.Load())
}

// callsProgram is the program of one agent.
type callsProgram struct {
	*Calls
	kind, turn int
	random     *rand.Rand
	sequence   uint32
	methods    uint32
	open       []uint32
}

// Run makes calls until the attack ends, and then waits for its end.
func (p *callsProgram) Run(t *bytefrogagent.Tracer) error {
	buffer, err := t.Acquire()
	if err != nil {
		return nil
	}
	p.enter(buffer, t, p.name(buffer, "main"))
	for int(p.sequence) < p.Events && t.Proceed() == nil {
		p.step(buffer, t)
		const stepBytes = signatureBytes + 1024
		if buffer.Room() < stepBytes {
			t.Send(buffer)
			if buffer, err = t.Acquire(); err != nil {
				return nil
			}
		}
	}
	t.Send(buffer)
	for t.Proceed() == nil {
		t.Sleep(100 * time.Millisecond)
	}
	return nil
}

// step makes the next call, or returns from one.
func (p *callsProgram) step(b *bytefrogagent.Buffer, t *bytefrogagent.Tracer) {
	const few, usualBytes, deep = 64, 200, 60
	switch p.kind {
	case newFunctions:
		p.enter(b, t, p.name(b, strings.Repeat("f", usualBytes)))
		p.leave(b, t)
	case longNames:
		p.enter(b, t, p.name(b, strings.Repeat("n", signatureBytes)))
		p.leave(b, t)
	case newPaths:
		for p.methods < few {
			p.name(b, "path")
		}
		if len(p.open) < deep && p.random.IntN(2) == 0 || len(p.open) < 2 {
			p.enter(b, t, p.random.Uint32N(few))
		} else {
			p.leave(b, t)
		}
	case newFrames:
		for p.methods < few {
			p.name(b, "frame")
		}
		p.enter(b, t, p.random.Uint32N(few))
		p.open = p.open[:1] // they are never left
	}
}

// name sends the name of another method, and returns its number.
func (p *callsProgram) name(b *bytefrogagent.Buffer, text string) uint32 {
	method := p.methods
	p.methods++
	b.Data = bytefrog.MapMethod{Method: method, Signature: fmt.Sprintf("attack/C%d_%d.%s;1;()V", p.turn, method, text)}.AppendTo(b.Data)
	return method
}

func (p *callsProgram) enter(b *bytefrogagent.Buffer, t *bytefrogagent.Tracer, method uint32) {
	p.open = append(p.open, method)
	p.event(b, t, bytefrog.TypeMethodEntry, method)
	p.calls.Add(1)
}

func (p *callsProgram) leave(b *bytefrogagent.Buffer, t *bytefrogagent.Tracer) {
	last := len(p.open) - 1
	p.event(b, t, bytefrog.TypeMethodExit, p.open[last])
	p.open = p.open[:last]
}

func (p *callsProgram) event(b *bytefrogagent.Buffer, t *bytefrogagent.Tracer, kind bytefrog.MessageType, method uint32) {
	b.Data = bytefrog.AppendEvent(b.Data, bytefrog.Event{
		Time: uint32(t.Elapsed().Milliseconds()), Sequence: p.sequence, Thread: 1, Type: kind, Method: method,
	})
	b.Events++
	p.sequence++
}
