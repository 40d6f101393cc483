// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// run is one time that a task's command is asked. Its answers are handled by the goroutine
// that asks; nobody else looks at it before it has ended.
type run struct {
	task *task
	// attending is what it is part of; of its fields those are used that stay.
	attending *attending
	process   *process
	link      *link
	details   *details
	// number tells it from others of the process.
	number int64
	ctx    context.Context
	end    context.CancelCauseFunc

	// starting are those who wait for it to begin; silent says that they were told that the
	// server says nothing, and over that the run is: nobody is told of silence any more. The
	// process's lock guards them until it is over.
	starting     []*starting
	silent, over bool

	// answers came, of what the task's limit is for.
	answers int64
	// began is when it was asked, and lastCall when it told of a call last; zero: never. The
	// process's lock guards lastCall.
	began, lastCall time.Time
	// affected says that the server told what the patterns match, and matched that they do.
	affected, matched bool
	// telling are the parts of a pattern by PerMethod; nil: there are none. The process's lock
	// guards it.
	telling []*part
	// ended is what the asking gave.
	ended error
}

// ask asks, and handles answers, until the command has ended.
func (r *run) ask() {
	if r.isCareful() {
		r.ended = r.askCareful()
		return
	}
	r.ended = r.link.Run(r.ctx, r.task.command(r.task.left()), r.each)
}

// isFull reports whether as many answers have come as the limit has.
func (r *run) isFull() bool {
	return r.task.limit > 0 && r.total() >= int64(r.task.limit)
}

// total is how many answers came that the limit is for: those of this run, and of all
// before where it goes on by itself.
func (r *run) total() int64 {
	if r.task.every > 0 {
		return r.answers
	}
	return r.task.answered + r.answers
}

// each handles an answer, which is valid until it returns.
func (r *run) each(reply greys.Reply) {
	p := r.process
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.ctx.Err() != nil {
		return // it is no longer wanted
	}
	p.replies++
	p.heard = p.env.now()
	r.notesCall(reply, p.heard)
	r.handle(reply)
	if p.memory != nil {
		_ = p.memory.Hold(p.held()) // where it is too much, the server is disconnected
	}
	if r.isTry() && r.hasBegun(reply) {
		r.begins()
	}
	p.env.telemetry.tell(p)
}

// handle handles an answer, of what it was asked for; others are none. The process's lock
// is held.
func (r *run) handle(reply greys.Reply) {
	p, now := r.process, r.process.env.now()
	switch reply := reply.(type) {
	case *greys.Affected:
		r.affect(reply)
	case *greys.Statistics:
		for i := range reply.Methods {
			p.calls.count(r, &reply.Methods[i], now)
		}
	case *greys.Tree:
		if r.counts() {
			p.tree(reply, now)
		}
	case *greys.CallStack:
		if r.counts() {
			p.env.saidStack(p.origin, r.task, reply)
		}
	case *greys.Record:
		r.record(reply)
	case *greys.Class:
		if r.counts() {
			p.class(r, reply)
		}
	case *greys.Method:
		if r.counts() {
			p.method(r, reply)
		}
	}
}

// counts counts an answer that the limit is for, and reports whether it is within. What
// comes beyond ends the run.
func (r *run) counts() bool {
	if r.isFull() {
		r.end(errEnough)
		return false
	}
	r.answers++
	return true
}

// affect is told what the patterns of the command match. Where that is nothing the command
// is ended: classes that are loaded later are not seen by it.
func (r *run) affect(a *greys.Affected) {
	r.affected = true
	r.matched = r.matched || a.Methods > 0 || a.Classes > 0
	if !r.task.kind.enhances() {
		return
	}
	r.task.matched = matched{classes: a.Classes, methods: a.Methods, known: true}
	if r.matched {
		r.task.unmatched.Over()
		return
	}
	if !r.isTry() {
		r.attending.sayUnmatched(r.task, r.process)
	}
	r.end(errUnmatched)
}

// record handles a recorded call: one that is told as it ends, or one of a list.
func (r *run) record(of *greys.Record) {
	if r.task.kind == askRecordList {
		if !r.process.records.isNew(of) || !r.process.wanted(of) {
			return
		}
	} else if r.counts() {
		r.attending.server.compareClocks(of.Time)
	} else {
		return
	}
	r.details.add(of)
}

// mayHaveEnhanced reports whether there may be something in classes that the run put there.
func (r *run) mayHaveEnhanced() bool {
	switch {
	case !r.task.kind.enhances():
		return false
	case r.ended != nil && r.link.unsent(r.ended):
		return false
	case r.affected:
		return r.matched
	default:
		return true
	}
}
