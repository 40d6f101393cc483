// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/text"
)

// isOf reports whether a detail is that of the call: the server may have forgotten the call, and
// have given its index to another.
func (c *Call) isOf(detail *greys.RecordDetail) bool {
	return detail.Index == c.Index && detail.Method == c.Method && greys.SimpleName(detail.Class) == greys.SimpleName(c.Class)
}

// details asks for details of recorded calls: the console reports calls with the simple names of
// their classes, and neither protocol with the exception. It asks for one at a time. A call for
// which the queue has no room is forwarded without its detail.
type details struct {
	settings *Settings
	link     *link.Link
	process  *process.Process
	events   Events
	queue    chan Call
	asking   sync.WaitGroup
	// unsupported: the server has no details. The asking goroutine owns it.
	unsupported bool
}

// newDetails begins to ask, until ctx ends or close is called.
func newDetails(ctx context.Context, s *Settings, l *link.Link, p *process.Process, events Events) *details {
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

// close waits until all calls are forwarded. Nothing may be added any more.
func (d *details) close() {
	close(d.queue)
	d.asking.Wait()
}

// add forwards a recorded call, later if there is something to ask.
func (d *details) add(of *greys.Record, traced bool) {
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

// askFor asks for the detail of a call, and forwards it. ok is false where there is none.
func (d *details) askFor(ctx context.Context, call *Call) (ok bool) {
	if ctx.Err() != nil || d.unsupported {
		return false
	}
	ctx, end := context.WithTimeout(ctx, d.settings.ControlTimeout())
	defer end()
	err := d.link.Run(ctx, greys.RecordDetailCommand{Index: call.Index}, func(reply greys.Reply) {
		detail, is := reply.(*greys.RecordDetail)
		if !is || ok || !call.isOf(detail) {
			return
		}
		ok = true
		if d.mayBeTrue(detail) {
			call.Detail = detail
			d.events.Call(call)
		}
	})
	d.unsupported = errors.Is(err, greys.ErrUnsupported)
	return ok
}

// mayBeTrue reports whether the cost of a call may be true: it is not that of a method that calls
// itself.
func (d *details) mayBeTrue(detail *greys.RecordDetail) bool {
	if !d.settings.PerMethod || d.settings.RecursionCheck == 0 || d.link.Protocol != greys.ProtocolConsole {
		return true
	}
	return d.process.CheckDetail(detail)
}

func (d *details) forwardWithout(call *Call) {
	d.settings.Counters.RecordWithoutDetail()
	if strings.Contains(call.Class, ".") {
		call.IsSimple = false // the command names the package
	}
	d.events.Call(call)
}
