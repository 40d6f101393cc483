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

// barriers are the breaks and the end of a run. Every batch carries those that concern its events, so
// no event after a break arrives without it.
type barriers struct {
	mu sync.Mutex
	// sorted are the latest callevent.MaxBarriers by their numbers.
	sorted []callevent.Barrier
	// news are those that no accepted empty batch has announced, in order of arrival, as many at
	// the most.
	news []callevent.Barrier
}

// barrierBytes is the memory of a break.
const barrierBytes = 2 * int(unsafe.Sizeof(callevent.Barrier{}))

func byNumber(a, b callevent.Barrier) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
}

// add adds a barrier. It returns how many old ones were dropped, and whether it was known before.
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

// concerning appends to dst the barriers of a batch with the sequence numbers first to last, as package callevent
// describes them.
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

// haveNews reports whether no accepted empty batch has announced some.
func (b *barriers) haveNews() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.news) > 0
}

// unannounced appends to dst those that no accepted empty batch has announced, or else the last one.
func (b *barriers) unannounced(dst []callevent.Barrier) []callevent.Barrier {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.news) == 0 && len(b.sorted) > 0 {
		return append(dst, b.sorted[len(b.sorted)-1])
	}
	return append(dst, b.news...)
}

// announced removes barriers that the pipeline has accepted in an empty batch.
func (b *barriers) announced(accepted []callevent.Barrier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.news = slices.DeleteFunc(b.news, func(barrier callevent.Barrier) bool { return slices.Contains(accepted, barrier) })
}
