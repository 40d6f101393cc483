// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"cmp"
	"slices"
	"sync"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// barriers are the breaks, and at last the end, of a run. Whatever connection
// closes a batch gives it those that concern its events, so that no event after
// a break arrives without it.
type barriers struct {
	mu sync.Mutex
	// sorted are the latest callevent.MaxBarriers by their numbers.
	sorted []callevent.Barrier
	// news are those that no accepted batch of their own has announced, in the
	// order in which they became known, as many at the most.
	news []callevent.Barrier
}

// barrierBytes is what a break takes.
const barrierBytes = 2 * int(unsafe.Sizeof(callevent.Barrier{}))

func byNumber(a, b callevent.Barrier) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
}

// add adds a barrier and says how many old ones had to go, and whether it was
// known already.
func (b *barriers) add(barrier callevent.Barrier) (dropped int, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, found := slices.BinarySearchFunc(b.sorted, barrier, byNumber)
	if found {
		return 0, true
	}
	b.sorted = slices.Insert(b.sorted, i, barrier)
	b.news = append(b.news, barrier)
	if len(b.sorted) > callevent.MaxBarriers {
		b.sorted = slices.Delete(b.sorted, 0, 1)
		dropped++
	}
	if len(b.news) > callevent.MaxBarriers {
		b.news = slices.Delete(b.news, 0, 1)
	}
	return dropped, false
}

// concerning appends to dst the barriers that touch the sequence numbers first to
// last, and the last one at or below first.
func (b *barriers) concerning(dst []callevent.Barrier, first, last uint64) []callevent.Barrier {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := -1
	for i, barrier := range b.sorted {
		if barrier.From > last {
			break
		}
		if barrier.To <= first {
			before = i
			continue
		}
		if before >= 0 {
			dst, before = append(dst, b.sorted[before]), -1
		}
		dst = append(dst, barrier)
	}
	if before >= 0 {
		dst = append(dst, b.sorted[before])
	}
	return dst
}

// haveNews reports whether there are some that no batch of their own has announced.
func (b *barriers) haveNews() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.news) > 0
}

// unannounced appends to dst those that no batch of their own has announced,
// without them the last known one.
func (b *barriers) unannounced(dst []callevent.Barrier) []callevent.Barrier {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.news) == 0 && len(b.sorted) > 0 {
		return append(dst, b.sorted[len(b.sorted)-1])
	}
	return append(dst, b.news...)
}

// announced says that the pipeline has accepted a batch with these, which
// unannounced gave.
func (b *barriers) announced(accepted []callevent.Barrier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.news = slices.DeleteFunc(b.news, func(barrier callevent.Barrier) bool { return slices.Contains(accepted, barrier) })
}
