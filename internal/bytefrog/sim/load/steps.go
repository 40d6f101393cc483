// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"strconv"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// step makes one step of a thread, seen by the agent and written to buffer at.
func (g *generator) step(t *thread, at int) {
	r := g.random.Uint64()
	switch g.choices.next(t, r&(1<<32-1), r>>32) {
	case enter:
		g.enter(t, at, uint32(r>>33*g.choices.functions>>31))
	case unwind:
		g.unwind(t, at, r>>32)
	case mark:
		g.mark(at)
	default:
		if g.choices.exceptions == 0 {
			g.leave(t, at)
			return
		}
		g.end(t, at)
	}
}

// end ends the top method of a thread: by a return or by an exception.
func (g *generator) end(t *thread, at int) {
	r := g.random.Uint64()
	how, exception := g.choices.instead(r)
	switch how {
	case unwind:
		t.leaving = exception + 1
		g.unwind(t, at, r>>48)
	case throwAndCatch:
		g.throw(t, at, exception)
	case throw:
		g.throw(t, at, exception)
		t.leaving = exception + 1
	default:
		g.leave(t, at)
	}
}

func (g *generator) enter(t *thread, at int, method uint32) {
	call := -1
	if g.truth != nil {
		call = g.truth.enter(t, method, int64(g.sequence))
	}
	t.stack = append(t.stack, frame{method: method, call: call})
	g.event(at, t, bytefrog.TypeMethodEntry, method, 0, 0)
	if !g.methods[method] {
		g.methods[method] = true
		g.name(at, bytefrog.MapMethod{Method: method, Signature: Signature(int(method))})
	}
	if !t.named {
		t.named = true
		g.name(at, bytefrog.MapThreadName{Thread: t.id, Time: g.now, Name: ThreadName(int(t.id))})
	}
}

// leave is a return. Its line is the number of the method.
func (g *generator) leave(t *thread, at int) {
	top := t.pop()
	if g.truth != nil {
		g.truth.leave(top.call, int64(g.sequence))
	}
	g.event(at, t, bytefrog.TypeMethodExit, top.method, 0, uint16(top.method))
}

func (g *generator) throw(t *thread, at int, exception uint32) {
	top := t.stack[len(t.stack)-1]
	if g.truth != nil {
		g.truth.throw(top.call, exception, g.sequence)
	}
	g.event(at, t, bytefrog.TypeException, top.method, exception, uint16(top.method))
	g.nameException(at, exception)
}

// unwind ends the top method by the exception. The method below catches it in half of the cases.
func (g *generator) unwind(t *thread, at int, random uint64) {
	exception := t.leaving - 1
	top := t.pop()
	if g.truth != nil {
		g.truth.unwind(top.call, exception, int64(g.sequence))
	}
	g.event(at, t, bytefrog.TypeExceptionBubble, top.method, exception, 0)
	g.nameException(at, exception)
	if len(t.stack) == 0 || random&1 == 0 {
		t.leaving = 0
	}
}

func (g *generator) mark(at int) {
	b := g.open[at]
	b.Data = bytefrog.Marker{
		Time:     g.now,
		Sequence: uint32(g.sequence),
		Key:      markerKey,
		Value:    strconv.FormatUint(g.sequence, 10),
	}.AppendTo(b.Data)
	if g.truth != nil {
		g.truth.mark(int64(g.sequence))
	}
	g.counted(at)
}

// name writes a name, to another open buffer if there is one.
func (g *generator) name(at int, m bytefrog.Message) {
	other := (at + 1) % len(g.open)
	if b := g.open[other]; b != nil && b.Room() >= namesRoom {
		at = other
	}
	b := g.open[at]
	b.Data = m.AppendTo(b.Data)
	g.names[at] = true
}

func (g *generator) nameException(at int, exception uint32) {
	if !g.failed[exception] {
		g.failed[exception] = true
		g.name(at, bytefrog.MapException{Exception: exception, Name: ExceptionName(int(exception))})
	}
}

// unseen makes one step of a thread while the agent is suspended.
func (g *generator) unseen(t *thread, random uint64) {
	switch g.choices.next(t, 1<<32-1, random) {
	case enter:
		method := uint32(random >> 1 * g.choices.functions >> 31)
		call := -1
		if g.truth != nil {
			call = g.truth.enter(t, method, none)
		}
		t.stack = append(t.stack, frame{method: method, call: call})
	case unwind:
		if g.truth != nil {
			g.truth.leave(t.stack[len(t.stack)-1].call, none)
		}
		t.pop()
		t.leaving = 0
	default:
		if g.truth != nil {
			g.truth.leave(t.stack[len(t.stack)-1].call, none)
		}
		t.pop()
	}
}

func (t *thread) pop() frame {
	top := t.stack[len(t.stack)-1]
	t.stack = t.stack[:len(t.stack)-1]
	return top
}
