// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// details asks for what the server knows of recorded calls beside: the console tells of
// them with the simple names of their classes, and neither protocol with the exception. One
// is asked for at a time, and what has no room to wait is handed on as it is.
type details struct {
	process *process
	link    *link
	queue   chan waitingRecord
	asking  sync.WaitGroup
	// unsupported says that the server has none. It is the asking goroutine's.
	unsupported bool
}

// waitingRecord is a recorded call that waits for its detail.
type waitingRecord struct {
	greys.Record
	received time.Time
	// traced says that a command tells of the call by a call tree.
	traced bool
}

// newDetails begins to ask, until ctx ends or it is closed.
func newDetails(ctx context.Context, p *process, l *link) *details {
	d := &details{process: p, link: l, queue: make(chan waitingRecord, p.env.config.Limits.MaxDetails)}
	d.asking.Go(func() { d.run(ctx) })
	return d
}

// close waits until all is handed on. Nothing is added any more.
func (d *details) close() {
	close(d.queue)
	d.asking.Wait()
}

// add hands on a recorded call, later if there is something to ask. The process's lock is
// held.
func (d *details) add(of *greys.Record) {
	env := d.process.env
	waiting := waitingRecord{*of, env.now(), d.process.isTraced(of)}
	waiting.Class, waiting.Method, waiting.Object = text(of.Class), text(of.Method), text(of.Object)
	if !of.IsSimple && !of.Threw {
		d.handOn(&waiting, nil)
		return
	}
	if env.config.RecordDetails {
		select {
		case d.queue <- waiting:
			return
		default:
		}
	}
	d.handOnAsItIs(&waiting)
}

func (d *details) run(ctx context.Context) {
	for waiting := range d.queue {
		if !d.ask(ctx, &waiting) {
			d.handOnAsItIs(&waiting)
		}
	}
}

// ask asks for the detail of a recorded call, and hands it on with that. ok is false where
// there is none to be had.
func (d *details) ask(ctx context.Context, of *waitingRecord) (ok bool) {
	if ctx.Err() != nil || d.unsupported {
		return false
	}
	ctx, end := context.WithTimeout(ctx, controlTimeout(d.process.env.config))
	defer end()
	err := d.link.Run(ctx, greys.RecordDetailCommand{Index: of.Index}, func(reply greys.Reply) {
		if detail, is := reply.(*greys.RecordDetail); is && !ok && of.isOf(detail) {
			ok = true
			if !d.isFalse(detail) {
				d.handOn(of, detail)
			}
		}
	})
	d.unsupported = errors.Is(err, greys.ErrUnsupported)
	return ok
}

// isFalse reports whether a call is one of a method that calls itself, whose cost is false, and
// counts it. Inner calls end first, and their stack says so.
func (d *details) isFalse(detail *greys.RecordDetail) bool {
	p := d.process
	if !p.env.config.PerMethod || p.env.config.RecursionCheck == 0 || d.link.protocol != ProtocolConsole {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nested[nestingName(detail.Class, detail.Method)] == nil && !p.hasRoomToNest() {
		p.untimed.records++ // nobody could know of its other calls
		p.env.telemetry.tell(p)
		return true
	}
	p.sawStack(map[methodName]bool{nestingName(detail.Class, detail.Method): true}, detail.Stack.Frames)
	if !p.isRecursive(detail.Class, detail.Method) {
		return false
	}
	p.untimed.records++
	p.env.telemetry.tell(p)
	return true
}

// isOf reports whether a detail is that of the recorded call: the server may have forgotten
// it, and have given its index to another.
func (w *waitingRecord) isOf(detail *greys.RecordDetail) bool {
	return detail.Index == w.Index && detail.Method == w.Method && simpleName(detail.Class) == simpleName(w.Class)
}

func (d *details) handOnAsItIs(of *waitingRecord) {
	d.process.env.telemetry.recordSimple()
	if strings.Contains(of.Class, ".") {
		of.IsSimple = false // the command has said the rest of its name
	}
	d.handOn(of, nil)
}

func (d *details) handOn(of *waitingRecord, detail *greys.RecordDetail) {
	d.process.env.spans.Add(recordSpan(d.process.origin, of, detail))
}
