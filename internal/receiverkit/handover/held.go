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
var errGivenUp = errors.New("the receiver disconnects the agent because it holds too much memory")

// Hold has the rules for batches that the pipeline refuses, or does not return from.
type Hold struct {
	// AtOnce: a batch is held after its first refusal.
	AtOnce bool
	// After is the time that Send waits before it holds a batch, also in a call of the pipeline. 0: no limit.
	After time.Duration
	// Memory bounds the held batches.
	Memory Memory
	// Refused is called before a batch is held or waits for memory, if no other batch is held. Drained is called when
	// the last held batch is delivered, and after such a wait. Both must not wait for Batches.
	Refused, Drained func()
}

// Memory bounds the bytes of held batches. Its methods are called from many goroutines.
type Memory interface {
	// Reserve reserves all bytes and returns true, or reserves none. It must not wait for Batches.
	Reserve(bytes int) bool
	// Release releases bytes.
	Release(bytes int)
}

// sendOrHold sends a batch if no other is held and the pipeline accepts it in time. Otherwise it holds the batch.
func (b *Batches) sendOrHold(p parcel, call callUntil) {
	b.waiting.Add(1)
	ended := b.sendInTime(&p, call)
	// A batch that waits for memory is refused too: the receiver must react before the wait.
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

// sendInTime sends a batch, unless others are held. It reports whether the batch is accepted or dropped.
func (b *Batches) sendInTime(p *parcel, call callUntil) bool {
	if b.Holds() {
		return false
	}
	until := limits{oneTry: b.settings.Hold.AtOnce, call: call}
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

// Wait returns when no batch is held.
func (b *Batches) Wait() { b.draining.Wait() }

// hold holds a copy of a batch, and waits for memory if necessary. It reports whether the batch is held; otherwise the
// batch is accepted or dropped.
func (b *Batches) hold(p parcel) bool {
	for {
		held, freed := b.tryHold(p)
		if held {
			return true
		}
		if freed == nil {
			// Other agents have all the memory: no held batch of this agent can free any.
			b.deliver(&p, unlimited)
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

// abandon ends the hand-over of a batch without another try. If a call of the pipeline continues, its result decides
// whether the batch counts as accepted or dropped.
func (b *Batches) abandon(p parcel, why error) {
	if p.calling == nil {
		b.delivered(p, why)
		return
	}
	p.batch.Data = nil // the caller may change it now
	b.draining.Go(func() {
		if err := <-p.calling; err == nil || consumererror.IsPermanent(err) {
			why = err
		}
		b.delivered(p, why)
	})
}

// tryHold holds a copy of a batch, if Memory has room for it. Otherwise it returns a channel that is closed when a held
// batch frees memory; nil: no batch is held. It reserves memory under the lock, so that no goroutine finds memory
// reserved and no batch held.
func (b *Batches) tryHold(p parcel) (held bool, freed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.settings.Hold.Memory.Reserve(len(p.batch.Data)) {
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

// drain delivers held batches until none is left.
func (b *Batches) drain() {
	defer b.draining.Done()
	for {
		b.mu.Lock()
		p := b.held[0]
		b.mu.Unlock()
		b.deliver(&p, unlimited)
		b.settings.Hold.Memory.Release(len(p.batch.Data))

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
