// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/callevent"
	"github.com/callbraid/callbraid/internal/ctf"
	"github.com/callbraid/callbraid/internal/symbols"
)

// addresses makes functions of the addresses of a process: by the objects that it has
// loaded, which are told when its state is, and later as they come and go. Call events
// that come before the list is complete wait for it, with the numbers that they have.
type addresses struct {
	objects *symbols.Objects
	// told are the objects as they were told, in that order: what a collector has to
	// know that goes on where this one stopped.
	told []symbols.Mapping
	// listed says that the list of objects is complete, given up that it is not waited
	// for any longer.
	listed, givenUp bool
	again           retelling
	known           map[uint64]*function
	last            *function
	lastAddress     uint64

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

// load notes that an object is loaded.
func (a *addresses) load(m symbols.Mapping) error {
	a.forget()
	if err := a.objects.Map(m); err != nil {
		return err
	}
	a.told = slices.DeleteFunc(a.told, func(old symbols.Mapping) bool {
		return old.Base == m.Base || old.Base < m.Base+m.Size && m.Base < old.Base+old.Size
	})
	a.told = append(a.told, m)
	return nil
}

// unload notes that an object is no longer loaded.
func (a *addresses) unload(base uint64) {
	a.forget()
	a.objects.Unmap(base)
	a.told = slices.DeleteFunc(a.told, func(old symbols.Mapping) bool { return old.Base == base })
}

// amend changes what was told of an object.
func (a *addresses) amend(base uint64, change func(m *symbols.Mapping)) {
	for i := range a.told {
		if a.told[i].Base == base {
			change(&a.told[i])
		}
	}
}

// recall loads the objects that a process had when it was read last.
func (a *addresses) recall(told []symbols.Mapping) {
	if a.objects == nil || len(told) == 0 {
		return
	}
	for _, m := range told {
		// Each was loaded once.
		_ = a.load(m)
	}
	a.listed = true
}

// forget forgets names: an object came or went.
func (a *addresses) forget() {
	clear(a.known)
	a.last = nil
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
		if a.known == nil || len(a.known) >= maxFunctions {
			a.known = map[uint64]*function{}
		}
		a.known[address] = f
	}
	a.last, a.lastAddress = f, address
	return f
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
		err = a.load(n.mapping(v))
	case noticeBuildID:
		base, _ := n.base.get(v)
		if err = a.objects.SetBuildID(uint64(base), v.Bytes(n.buildID)); err == nil {
			id := bytes.Clone(v.Bytes(n.buildID))
			a.amend(uint64(base), func(m *symbols.Mapping) { m.BuildID, m.BuildIDFollows = id, false })
		}
		a.forget()
	case noticeDebugLink:
		base, _ := n.base.get(v)
		link := validString(n.debugLink.get(v))
		if err = a.objects.SetDebugLink(uint64(base), link); err == nil {
			a.amend(uint64(base), func(m *symbols.Mapping) { m.DebugLink = link })
		}
	case noticeGone:
		base, _ := n.base.get(v)
		a.unload(uint64(base))
	}
	if err != nil {
		p.trace.follower.logger.Debug("What a process says of its objects makes no sense", zap.Int64("pid", p.pid), zap.Error(err))
	}
}
