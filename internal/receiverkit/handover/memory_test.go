// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// entryBytes is the size of an entry of the queues below.
const entryBytes = 128 << 10

func (b *bed) largeEntries(next *pipeline, overflow Overflow) numberQueue {
	settings := settingsOf(b, recordsOf)
	settings.MaxItems, settings.MaxBytes, settings.Overflow = 1000, 1000*entryBytes, overflow
	settings.Size = func(*int) (items, bytes int) { return 1, entryBytes }
	return NewLogs(next, settings)
}

func TestAQueueDropsAndCountsEntriesThatTheProcessHasNoMemoryFor(t *testing.T) {
	process := budget.New(16 * entryBytes)
	b, next := newBed(t), &pipeline{refuse: errRefused}
	b.settings.Memory = process.Group("logs")
	queue := b.largeEntries(next, OverflowDrop)
	taken := 0
	for queue.Enqueue(1) {
		taken++
		require.LessOrEqual(t, taken, 18)
	}
	assert.GreaterOrEqual(t, taken, 8)
	assert.False(t, queue.Enqueue(1))
	assert.Equal(t, map[string]int{DroppedMemory: 2}, b.dropped())
	assert.Equal(t, 1, b.lines("The memory budget has no room for log records"))
	next.refuseWith(nil)
	b.await("the queue to be empty", func() bool { return queue.Bytes() == 0 })
	assert.True(t, queue.Enqueue(2), "the memory of accepted entries is free")
	queue.Close()
	assert.Zero(t, process.Used())
	assert.EqualValues(t, taken+1, b.observed("accepted_log_records"))
}

func TestAQueueWaitsOnlyForMemoryThatItHoldsItself(t *testing.T) {
	for name, overflow := range map[string]Overflow{"always": OverflowWait, "while the pipeline accepts": OverflowDropWhileRefused} {
		t.Run(name, func(t *testing.T) {
			const entries = 40
			b, next := newBed(t), &pipeline{hang: make(chan struct{})}
			b.settings.Memory = budget.New(16 * entryBytes).Group("logs")
			queue := b.largeEntries(next, overflow)
			added := background(func() {
				for range entries {
					queue.Enqueue(1)
				}
			})
			b.await("the memory to be full", func() bool { return queue.Bytes() >= 14*entryBytes })
			assert.False(t, isClosed(added))
			close(next.hang)
			<-added
			queue.Close()
			assert.Empty(t, b.dropped())
			assert.EqualValues(t, entries, b.observed("accepted_log_records"))
		})
		t.Run(name+", and not for that of others", func(t *testing.T) {
			b, next := newBed(t), &pipeline{}
			b.settings.Memory = budget.New(entryBytes / 2).Group("logs")
			queue := b.largeEntries(next, overflow)
			assert.False(t, queue.Enqueue(1))
			queue.Close()
			assert.Equal(t, map[string]int{DroppedMemory: 1}, b.dropped())
		})
	}
}

func TestAfterGiveUpEventsAreSentOnceAndTheEndUntilAccepted(t *testing.T) {
	for name, hold := range map[string]bool{"waiting": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			b, next := newBed(t), &pipeline{refuse: errRefused}
			giveUp := make(chan struct{})
			settings := BatchesSettings{
				Settings: b.settings, Next: next, GiveUp: giveUp,
				Accepted: func() { b.add(1, accepted) },
				Dropped:  func(events int, reason string) { b.add(events, reason) },
				Retried:  func() { b.add(1, retried) },
			}
			m := &memory{}
			if hold {
				settings.Hold, m, _, _ = holding(2)
			}
			batches := NewBatches(settings)
			sent := background(func() {
				for i := range 4 {
					batches.Send(numbered(i, 3), pcommon.NewResource())
				}
			})
			b.await("tries", func() bool { return next.tried() >= manyRefusals && batches.Waiting() > 0 })
			close(giveUp)
			<-sent
			batches.Wait()
			assert.Equal(t, map[string]int{DroppedMemory: 12}, b.dropped())
			assert.Zero(t, m.used.Load())
			end := background(func() {
				batches.Send(numbered(9, 0), pcommon.NewResource())
				batches.Wait()
			})
			tried := next.tried()
			b.await("the end to be tried again", func() bool { return next.tried() > tried+manyRefusals })
			next.refuseWith(nil)
			<-end
			assert.Equal(t, []string{"9"}, next.flat())
		})
	}
}

func TestALateBatchIsDroppedForTheReasonOfItsContext(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	ctx, giveUp := context.WithCancelCause(b.settings.Context)
	b.settings.Context = ctx
	batches := b.batches(next, nil)
	sent := background(func() { batches.Send(numbered(0, 3), pcommon.NewResource()) })
	b.await("tries", func() bool { return next.tried() >= manyRefusals })
	giveUp(Late("end_timeout"))
	<-sent
	assert.Equal(t, map[string]int{"end_timeout": 3}, b.dropped())
}

// Otherwise the budget would disconnect an agent, and a pipeline that refuses would hold the memory.
func TestTheLargestQueueDropsItsOldestEntriesForOtherAccounts(t *testing.T) {
	process := budget.New(16 * entryBytes)
	b, next := newBed(t), &pipeline{refuse: errRefused}
	b.settings.Memory = process.Group("logs")
	queue := b.largeEntries(next, OverflowDrop)
	for i := range 12 {
		require.True(t, queue.Enqueue(i))
	}
	b.await("the pipeline to refuse", func() bool { return next.tried() > 0 })
	run := process.Group("bytefrog").Open(budget.Settings{Leave: func(*budget.Error) { t.Error("the run has to leave") }})
	for range 6 {
		require.NoError(t, run.Reserve(entryBytes))
	}
	b.await("the queue to give way", func() bool { return b.dropped()[DroppedMemory] > 0 })
	assert.Less(t, queue.Bytes(), 12*entryBytes)
	next.refuseWith(nil)
	queue.Close()
	run.Close()
	assert.Zero(t, process.Used())
	assert.EqualValues(t, 12, b.observed("accepted_log_records")+int64(b.dropped()[DroppedMemory]))
}
