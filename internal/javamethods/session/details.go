// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/text"
)

// isOf reports whether a detail belongs to the call: the server may have forgotten the call and reused its index.
func (c *Call) isOf(detail *javamethods.RecordDetail) bool {
	return detail.Index == c.Index && detail.Method == c.Method && javamethods.SimpleName(detail.Class) == javamethods.SimpleName(c.Class)
}

// details requests details of recorded calls. Without them the console sends only simple class names, and both
// protocols send no exception. It requests one at a time. If the queue is full, the call is forwarded without its
// detail.
type details struct {
	settings *Settings
	link     *Link
	process  *process.Process
	events   Events
	queue    chan Call
	asking   sync.WaitGroup
	// unsupported means that the server has no details. The requesting goroutine owns it.
	unsupported bool
}

// newDetails starts the goroutine that requests details. It runs until close; after the end of ctx it only forwards.
func newDetails(ctx context.Context, s *Settings, l *Link, p *process.Process, events Events) *details {
	d := &details{settings: s, link: l, process: p, events: events, queue: make(chan Call, s.MaxDetails)}
	d.asking.Go(func() {
		for call := range d.queue {
			if !d.askFor(ctx, &call) {
				d.forwardWithout(&call)
			}
		}
	})
	return d
}

// close waits until all calls are forwarded. The caller must not add calls afterwards.
func (d *details) close() {
	close(d.queue)
	d.asking.Wait()
}

// add forwards a recorded call, or queues it if its detail is needed.
func (d *details) add(of *javamethods.Record, traced bool) {
	call := Call{Record: *of, Received: d.settings.Now(), Traced: traced}
	call.Class, call.Method, call.Object = text.Short(of.Class), text.Short(of.Method), text.Short(of.Object)
	if !of.IsSimple && !of.Threw {
		d.events.Call(&call)
		return
	}
	if d.settings.RecordDetails {
		select {
		case d.queue <- call:
			return
		default:
		}
	}
	d.forwardWithout(&call)
}

// askFor requests the detail of a call and forwards both. ok is false if there is no detail.
func (d *details) askFor(ctx context.Context, call *Call) (ok bool) {
	if ctx.Err() != nil || d.unsupported {
		return false
	}
	ctx, end := context.WithTimeout(ctx, d.settings.ControlTimeout())
	defer end()
	err := d.link.Run(ctx, javamethods.RecordDetailCommand{Index: call.Index}, func(reply javamethods.Reply) {
		detail, is := reply.(*javamethods.RecordDetail)
		if !is || ok || !call.isOf(detail) {
			return
		}
		ok = true
		if d.mayBeTrue(detail) {
			call.Detail = detail
			d.events.Call(call)
		}
	})
	d.unsupported = errors.Is(err, javamethods.ErrUnsupported)
	return ok
}

// mayBeTrue reports whether the cost of a call may be true: its method does not call itself.
func (d *details) mayBeTrue(detail *javamethods.RecordDetail) bool {
	if !d.settings.PerMethod || d.settings.RecursionCheck == 0 || !d.link.MixesCalls {
		return true
	}
	return d.process.CheckDetail(detail)
}

func (d *details) forwardWithout(call *Call) {
	d.settings.Counters.RecordWithoutDetail()
	if strings.Contains(call.Class, ".") {
		call.IsSimple = false // the name has a package, because the command had it
	}
	d.events.Call(call)
}
