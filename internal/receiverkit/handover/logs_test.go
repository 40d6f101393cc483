// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// The lines of the log.
const (
	lineQueueFull        = "The queue of log records is full"
	lineQueueFullRefused = "The pipeline refuses log records and their queue is full"
	lineLogsDropped      = "The pipeline refuses log records with a permanent error"
	lineLogsLate         = "The time of the shutdown is over: the receiver drops log records"
)

// entry is one log record, or several of the same text, each with so many bytes.
type entry struct {
	text    string
	records int
}

func (e *entry) size() (records, bytes int) { return e.records, e.records * len(e.text) }

func logsOf(entries []entry) plog.Logs {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, e := range entries {
		for range e.records {
			records.AppendEmpty().Body().SetStr(e.text)
		}
	}
	return logs
}

func one(text string) entry { return entry{text: text, records: 1} }

// queue has room for so many records and bytes.
func (b *bed) queue(next *pipeline, overflow Overflow, records, bytes int) *Logs[entry] {
	return NewLogs(next, QueueSettings[entry, plog.Logs]{
		Settings: b.settings, MaxItems: records, MaxBytes: bytes, Overflow: overflow, MaxAtOnce: 100,
		Size: (*entry).size, Make: logsOf,
		Dropped: func(records int, reason string) { b.add(records, reason) },
	})
}

// refusedOne adds a record and waits until the pipeline has refused it. From then on no record leaves the queue before
// the pipeline accepts.
func (b *bed) refusedOne(logs *Logs[entry], next *pipeline) {
	b.t.Helper()
	next.refuseWith(errRefused)
	tries := next.tried()
	logs.Enqueue(one("x"))
	b.await("a refusal", func() bool { return next.tried() > tries })
	b.await("the queue to know", func() bool {
		logs.mu.Lock()
		defer logs.mu.Unlock()
		return logs.refusing
	})
}

func TestAddDoesNotWaitForALogsPipelineThatRefuses(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	logs := b.queue(next, OverflowDrop, 10, 1<<20)
	b.refusedOne(logs, next)
	for range 100 {
		logs.Enqueue(one("y"))
	}
	assert.Equal(t, map[string]int{DroppedQueueFull: 90}, b.dropped())
	assert.Equal(t, 1, b.lines(lineQueueFull), "one line for a burst")
	next.refuseWith(nil)
	logs.Close()
	assert.Equal(t, [][]string{{"x"}, slices.Repeat([]string{"y"}, 10)}, next.names(), "one call has all waiting records")
	assert.Zero(t, logs.Bytes())
	assert.EqualValues(t, 11, b.observed("accepted_log_records"))
	assert.Zero(t, b.observed("refused_log_records"))
	// After Close the queue accepts no entry.
	logs.Enqueue(one("z"))
	assert.Equal(t, map[string]int{DroppedQueueFull: 90, DroppedShutdown: 1}, b.dropped())
}

func TestTheNextBurstOfDroppedLogRecordsIsLoggedAgain(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	logs := b.queue(next, OverflowDrop, 1, 1<<20)
	for burst := range 3 {
		b.refusedOne(logs, next)
		for range 5 {
			logs.Enqueue(one("y"))
		}
		assert.Equal(t, burst+1, b.lines(lineQueueFull))
		next.refuseWith(nil)
		b.await("the queue to be empty", func() bool { return logs.Bytes() == 0 })
		b.pass(logline.Pause)
	}
	logs.Close()
}

func TestLogRecordsThatWaitHaveBoundedMemory(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	const limit, size = 4 << 20, 64 << 10
	logs := b.queue(next, OverflowDrop, 10_000, limit)
	text := strings.Repeat("x", size)
	for range 1000 {
		logs.Enqueue(one(text))
		assert.LessOrEqual(t, logs.Bytes(), limit)
	}
	assert.Equal(t, map[string]int{DroppedQueueFull: 1000 - limit/size}, b.dropped(), "all added records still wait")
	next.refuseWith(nil)
	logs.Close()
	assert.Len(t, next.flat(), limit/size)
	for _, texts := range next.names() {
		assert.LessOrEqual(t, len(texts), maxBytesPerCall/size)
	}
	assert.Zero(t, logs.Bytes())
}

func TestAnEntryAboveTheBoundsFitsIntoAnEmptyQueue(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	logs := b.queue(next, OverflowWait, 2, 2)
	for range 20 {
		logs.Enqueue(entry{text: "large", records: 5})
	}
	logs.Close()
	assert.Len(t, next.flat(), 100)
	assert.Empty(t, b.dropped())
}

func TestAddWaitsForRoomWhileThePipelineAccepts(t *testing.T) {
	b, next := newBed(t), &pipeline{hang: make(chan struct{})}
	logs := b.queue(next, OverflowDropWhileRefused, 1, 1<<20)
	added := background(func() {
		for range 100 {
			logs.Enqueue(one("x"))
		}
	})
	close(next.hang)
	<-added
	logs.Close()
	assert.Len(t, next.flat(), 100)
	assert.Empty(t, b.dropped())
}

func TestAddStopsWaitingWhenThePipelineRefuses(t *testing.T) {
	b, next := newBed(t), &pipeline{hang: make(chan struct{}), refuse: errRefused}
	logs := b.queue(next, OverflowDropWhileRefused, 1, 1<<20)
	added := background(func() {
		for range 10 {
			logs.Enqueue(one("x"))
		}
	})
	b.await("the queue to be full", func() bool { return logs.Bytes() == 2 })
	assert.False(t, isClosed(added))
	close(next.hang)
	<-added
	assert.Equal(t, map[string]int{DroppedQueueFull: 8}, b.dropped())
	assert.Equal(t, 1, b.lines(lineQueueFullRefused))
	next.refuseWith(nil)
	logs.Close()
	assert.Len(t, next.flat(), 2)
}

func TestAddWaitsAgainWhenThePipelineAcceptsAgain(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	logs := b.queue(next, OverflowDropWhileRefused, 1, 1<<20)
	b.refusedOne(logs, next)
	next.refuseWith(nil)
	b.await("all to be accepted", func() bool { return logs.Bytes() == 0 })
	hang := make(chan struct{})
	next.mu.Lock()
	next.hang = hang
	next.mu.Unlock()
	added := background(func() {
		for range 100 {
			logs.Enqueue(one("y"))
		}
	})
	b.await("the queue to be full", func() bool { return logs.Bytes() == 2 })
	close(hang)
	<-added
	logs.Close()
	assert.Len(t, next.flat(), 101)
	assert.Empty(t, b.dropped())
}

func TestWithOverflowWaitAddWaitsForAPipelineThatRefuses(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	logs := b.queue(next, OverflowWait, 1, 1<<20)
	b.refusedOne(logs, next)
	added := background(func() {
		for range 10 {
			logs.Enqueue(one("y"))
		}
	})
	tries := next.tried()
	b.await("tries", func() bool { return next.tried() > tries+3 })
	assert.False(t, isClosed(added))
	next.refuseWith(nil)
	<-added
	logs.Close()
	assert.Len(t, next.flat(), 11)
	assert.Empty(t, b.dropped())
}

func TestAddStopsWaitingAtTheShutdown(t *testing.T) {
	for name, end := range map[string]func(*bed, *Logs[entry]){
		"the time of the shutdown is over": func(b *bed, _ *Logs[entry]) { b.over() },
		"the queue is closed":              func(b *bed, logs *Logs[entry]) { go logs.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			b, next := newBed(t), &pipeline{}
			logs := b.queue(next, OverflowWait, 1, 1<<20)
			b.refusedOne(logs, next)
			logs.Enqueue(one("y"))
			added := background(func() { logs.Enqueue(one("z")) })
			end(b, logs)
			<-added
			b.over()
			logs.Close()
			assert.Equal(t, map[string]int{DroppedShutdown: 3}, b.dropped())
			assert.Empty(t, next.flat())
		})
	}
}

func TestLogRecordsThatArePermanentlyRefusedAreDroppedAndCounted(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: consumererror.NewPermanent(errNever)}
	logs := b.queue(next, OverflowDrop, 10, 1<<20)
	logs.Enqueue(one("x"))
	b.await("the drop", func() bool { return b.count(DroppedPermanent) == 1 })
	logs.Enqueue(one("x"))
	b.await("the drop", func() bool { return b.count(DroppedPermanent) == 2 })
	assert.Equal(t, 1, b.lines(lineLogsDropped))
	next.refuseWith(nil)
	logs.Enqueue(one("y"))
	b.await("all to be accepted", func() bool { return logs.Bytes() == 0 })
	b.pass(logline.Pause)
	next.refuseWith(consumererror.NewPermanent(errNever))
	logs.Enqueue(one("x"))
	logs.Close()
	assert.Equal(t, 2, b.lines(lineLogsDropped), "another burst")
	assert.Equal(t, map[string]int{DroppedPermanent: 3}, b.dropped())
}

func TestAPipelineThatChangesLogRecordsGetsACopy(t *testing.T) {
	b, next := newBed(t), &pipeline{spoils: true}
	logs := b.queue(next, OverflowDrop, 10, 1<<20)
	b.refusedOne(logs, next)
	next.refuseWith(nil)
	logs.Close()
	assert.Equal(t, []string{"x"}, next.flat())
}

func TestLogRecordsThatAreNotAcceptedInTheTimeOfTheShutdownAreDropped(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	b.settings.Retry = backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour}
	logs := b.queue(next, OverflowDrop, 10, 1<<20)
	b.refusedOne(logs, next)
	logs.Enqueue(one("y"))
	b.over()
	logs.Close()
	logs.Enqueue(one("z"))
	assert.Equal(t, map[string]int{DroppedShutdown: 3}, b.dropped())
	assert.Equal(t, 1, b.lines(lineLogsLate), "one line for all")
	assert.Zero(t, b.lines(lineLogsDropped))
}

func TestEntriesOfManyGoroutinesAllArriveInOrder(t *testing.T) {
	b, next := newBed(t), &pipeline{refusesEveryOther: true}
	logs := b.queue(next, OverflowWait, 7, 1<<20)
	const each = 200
	var adding sync.WaitGroup
	for who := range 4 {
		adding.Add(1)
		go func() {
			defer adding.Done()
			for i := range each {
				logs.Enqueue(entry{text: string(rune('a'+who)) + numbers(each)[i], records: 1})
			}
		}()
	}
	adding.Wait()
	logs.Close()
	got := next.flat()
	assert.Len(t, got, 4*each)
	for who := range 4 {
		var of []string
		for _, text := range got {
			if n, ok := strings.CutPrefix(text, string(rune('a'+who))); ok {
				of = append(of, n)
			}
		}
		assert.Equal(t, numbers(each), of)
	}
}
