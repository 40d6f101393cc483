// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"bytes"
	"errors"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
)

// errGivenUp: a batch has no memory to wait in.
var errGivenUp = errors.New("the agent has to leave because it holds too much memory")

// Hold says how batches are held that the pipeline refuses, or does not return from.
type Hold struct {
	// AtOnce says that a batch is held when the pipeline has refused it.
	AtOnce bool
	// After is how long whoever hands on a batch waits before it is held, for calls too that
	// the pipeline has not returned from. 0: for ever.
	After time.Duration
	// Memory is where held batches are.
	Memory Memory
	// Refused is called before a batch is held, or waits for memory, while nothing is held. Drained
	// is called when nothing is held any more, and after such a wait. Both must not wait for Batches.
	Refused, Drained func()
}

// Memory bounds how many bytes of batches are held. It is for many goroutines.
type Memory interface {
	// Take takes bytes, all or none, and reports whether it did. It must not wait for Batches.
	Take(bytes int) bool
	// Give gives bytes back.
	Give(bytes int)
}

// sendOrHold hands on a batch if the pipeline takes it in time and nothing is held, or
// holds it.
func (b *Batches) sendOrHold(p parcel, call callUntil) {
	b.waiting.Add(1)
	ended := b.sendInTime(&p, call)
	// A batch that waits for memory is refused too: its agent learns of it before.
	refused := !ended && !b.Holds()
	if refused {
		if p.calling != nil {
			b.stuck(b.settings.Hold.After)
		}
		b.settings.Hold.Refused()
	}
	held := !ended && b.hold(p)
	b.waiting.Add(-1)
	if !ended && !held {
		b.settings.Hold.Drained()
	}
}

// sendInTime hands on a batch, unless others are held, and reports whether that is over: the
// batch was accepted, or dropped.
func (b *Batches) sendInTime(p *parcel, call callUntil) bool {
	if b.Holds() {
		return false
	}
	until := limits{atOnce: b.settings.Hold.AtOnce, call: call}
	if after := b.settings.Hold.After; after > 0 {
		until.deadline = time.Now().Add(after)
	}
	return b.deliver(p, until)
}

// Holds reports whether batches are held.
func (b *Batches) Holds() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held) > 0
}

// Wait waits until nothing is held.
func (b *Batches) Wait() { b.draining.Wait() }

// hold keeps a copy of a batch until it can be handed on, and waits for memory where
// there is none. It reports whether the batch is held, and false if its hand-over is over.
func (b *Batches) hold(p parcel) bool {
	for {
		held, freed := b.tryHold(p)
		if held {
			return true
		}
		if freed == nil {
			// Others have all the memory: there is nothing here to wait for.
			b.deliver(&p, forEver)
			return false
		}
		select {
		case <-freed:
		case <-b.settings.GiveUp:
			b.abandon(p, errGivenUp)
			return false
		case <-b.settings.Context.Done():
			b.abandon(p, b.settings.Context.Err())
			return false
		}
	}
}

// abandon ends the hand-over of a batch without another try. Where the pipeline has not returned
// from a call, the batch counts as accepted or dropped by what that call returns.
func (b *Batches) abandon(p parcel, why error) {
	if p.calling == nil {
		b.delivered(p, why)
		return
	}
	p.batch.Data = nil // it is the caller's again
	b.draining.Go(func() {
		if err := <-p.calling; err == nil || consumererror.IsPermanent(err) {
			why = err
		}
		b.delivered(p, why)
	})
}

// tryHold keeps a copy of a batch, if there is memory for it. Otherwise it returns what is closed
// when a held batch frees some; nil: none is held. The lock is held while memory is taken, so that
// nobody finds the memory taken and no batch held.
func (b *Batches) tryHold(p parcel) (held bool, freed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.settings.Hold.Memory.Take(len(p.batch.Data)) {
		return false, b.freed
	}
	p.batch.Data = bytes.Clone(p.batch.Data)
	b.held = append(b.held, p)
	if len(b.held) == 1 {
		b.freed = make(chan struct{})
		b.draining.Add(1)
		go b.drain()
	}
	return true, nil
}

// drain hands on what is held until nothing is.
func (b *Batches) drain() {
	defer b.draining.Done()
	for {
		b.mu.Lock()
		p := b.held[0]
		b.mu.Unlock()
		b.deliver(&p, forEver)
		b.settings.Hold.Memory.Give(len(p.batch.Data))

		b.mu.Lock()
		b.held[0] = parcel{}
		b.held = b.held[1:]
		rest := len(b.held)
		close(b.freed)
		b.freed = make(chan struct{})
		if rest == 0 {
			b.held, b.freed = nil, nil
		}
		b.mu.Unlock()
		if rest == 0 {
			b.settings.Hold.Drained()
			return
		}
	}
}
