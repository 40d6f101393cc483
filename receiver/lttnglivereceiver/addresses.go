// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// addresses makes functions of the addresses of a process: by the objects that it has
// loaded, which are told when its state is, and later as they come and go. Call events
// that come before the list is complete wait for it, with the numbers that they have.
type addresses struct {
	objects *symbols.Objects
	// told are the objects as they were told, in that order: what a collector has to
	// know that goes on where this one stopped.
	told []symbols.Mapping
	// bytes is how many the lists of objects take, about.
	bytes int
	// listed says that the list of objects is complete, given up that it is not waited
	// for any longer.
	listed, givenUp bool
	again           retelling
	// known are the functions that were asked for, and knownBytes what they take, about.
	known       map[uint64]*function
	knownBytes  int
	last        *function
	lastAddress uint64

	waiting []waitingEvent
	// since is when the first of them came.
	since time.Time
}

// waitingEvent is a call event that waits for the name of its function.
type waitingEvent struct {
	sequence uint64
	nanos    int64
	address  uint64
	lane     *lane
	kind     callevent.Kind
}

// wait reports whether addresses have to wait.
func (a *addresses) wait() bool { return !a.listed && !a.givenUp }

// overdue reports whether addresses have waited for long enough.
func (a *addresses) overdue(now time.Time, most time.Duration) bool {
	return len(a.waiting) > 0 && now.Sub(a.since) >= most
}

// function is the function at an address.
func (p *process) function(address uint64) *function {
	a := &p.addresses
	if a.last != nil && a.lastAddress == address {
		return a.last
	}
	f := a.known[address]
	if f == nil {
		f = p.nameOf(address)
		if len(a.known) >= maxFunctions {
			p.forgetAddresses()
		}
		bytes := nameBytes + len(f.Qualified) + len(f.Display) + len(f.Text)
		p.hold(bytes)
		if a.known == nil {
			a.known = map[uint64]*function{}
		}
		a.known[address] = f
		a.knownBytes += bytes
	}
	a.last, a.lastAddress = f, address
	return f
}

// forgetAddresses forgets what is at which address: names are made again.
func (p *process) forgetAddresses() {
	a := &p.addresses
	clear(a.known)
	a.last = nil
	p.hold(-a.knownBytes)
	a.knownBytes = 0
}

func (p *process) nameOf(address uint64) *function {
	named := p.addresses.objects.Name(address)
	if !named.Named {
		p.trace.env.telemetry.namesUnknown(1)
	}
	return &function{Function: callevent.Function{Qualified: named.Qualified, Display: named.Display, Text: named.Text}}
}

// address packs a call event whose function is an address, or lets it wait.
func (p *process) address(kind callevent.Kind, nanos int64, address uint64, l *lane) {
	a := &p.addresses
	sequence := p.number()
	if !a.wait() || !p.trace.tellsObjects {
		p.pack(kind, sequence, nanos, p.function(address), l, nil)
		return
	}
	if len(a.waiting) == 0 {
		a.since = p.trace.env.now()
	}
	a.waiting = append(a.waiting, waitingEvent{sequence: sequence, nanos: nanos, address: address, lane: l, kind: kind})
	p.trace.follower.waiting++
	if nanos-a.waiting[0].nanos >= int64(p.config.NameWait) {
		p.settleAddresses()
	}
	p.trace.follower.boundWaiting()
}

// settleAddresses packs what waits with the names that there are.
func (p *process) settleAddresses() {
	waiting := p.takeWaiting()
	if len(waiting) == 0 {
		return
	}
	p.addresses.givenUp = true
	for i := range waiting {
		w := &waiting[i]
		p.pack(w.kind, w.sequence, w.nanos, p.function(w.address), w.lane, nil)
	}
}

// takeWaiting is what waits, which it does no longer.
func (p *process) takeWaiting() []waitingEvent {
	waiting := p.addresses.waiting
	p.addresses.waiting = nil
	p.trace.follower.waiting -= len(waiting)
	return waiting
}

// heed takes what an event says of the process.
func (p *process) heed(n *notice, v *ctf.Values) {
	a := &p.addresses
	if n.kind == noticeName {
		if name := n.procname.get(v); len(name) > 0 {
			a.again.program = callevent.Name(name)
			if !p.made {
				p.program = a.again.program
			}
		}
	}
	if a.objects == nil {
		return
	}
	var err error
	switch n.kind {
	case noticeStart:
		a.listed, a.givenUp = false, false
	case noticeEnd:
		if len(a.again.before) > 0 {
			p.retold()
			return
		}
		a.listed = true
		p.settleAddresses()
	case noticeObject:
		err = p.load(n.mapping(v))
	case noticeBuildID:
		base, _ := n.base.get(v)
		err = p.setBuildID(uint64(base), v.Bytes(n.buildID))
	case noticeDebugLink:
		base, _ := n.base.get(v)
		err = p.setDebugLink(uint64(base), start(n.debugLink.get(v), symbols.MaxNameBytes))
	case noticeGone:
		base, _ := n.base.get(v)
		p.unload(uint64(base))
	}
	if err != nil {
		p.trace.follower.logger.Debug("What a process says of its objects makes no sense", zap.Int64("pid", p.pid), zap.Error(err))
	}
}
