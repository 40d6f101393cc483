// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// maxBytesPerCall bounds the bytes of one call of the pipeline. The last entry may exceed it.
const maxBytesPerCall = 1 << 20

// Overflow is the behaviour of Enqueue when the queue is full.
type Overflow uint8

const (
	// OverflowDrop drops the entry. Enqueue never waits.
	OverflowDrop Overflow = iota
	// OverflowDropWhileRefused drops the entry while the pipeline refuses. While the pipeline accepts, Enqueue waits for
	// room: the source can be read later.
	OverflowDropWhileRefused
	// OverflowWait lets Enqueue wait for room.
	OverflowWait
)

// QueueSettings are the settings of a Queue. All fields are required; Overflow may be 0.
type QueueSettings[T, D any] struct {
	Settings
	// MaxItems bounds the waiting items (log records, spans, samples). MaxBytes bounds their bytes, including those
	// that the pipeline has now. An entry above a bound fits into an empty queue.
	MaxItems, MaxBytes int
	Overflow           Overflow
	// MaxAtOnce bounds the entries of one call of the pipeline.
	MaxAtOnce int
	// Size returns the number of items of an entry, and its approximate bytes in memory.
	Size func(*T) (items, bytes int)
	// Make returns the data for the pipeline, from one or more entries.
	Make func(entries []T) D
	// Dropped counts dropped items (DroppedQueueFull, DroppedMemory, DroppedPermanent, DroppedShutdown).
	Dropped func(items int, reason string)
}

// Queue sends entries T to the pipeline of one signal, which accepts D. So no other work waits for a pipeline that
// refuses. Entries that do not fit wait, or are dropped and counted: see Overflow. An entry has one item or several. The
// methods can be called from many goroutines.
type Queue[T, D any] struct {
	settings QueueSettings[T, D]
	signal   signal[D]
	// work receives a value when the queue has an entry, or was closed.
	work chan struct{}
	done chan struct{}
	// memory is the account of the entries' bytes; nil: none. The budget last requested back the bytes in owed, and sent
	// a value to requested. shrinking is the goroutine that frees them.
	memory    *budget.Account
	owed      atomic.Int64
	requested chan struct{}
	shrinking sync.WaitGroup

	mu     sync.Mutex
	queue  []T
	closed bool
	// items counts those in the queue. bytes also counts those that the pipeline has now.
	items, bytes int
	// refusing: the pipeline refused the current data.
	refusing bool
	// changed is closed, and replaced, when a waiting Enqueue must look again.
	changed chan struct{}

	// Bursts of drops: full of a full queue, memoryless of used-up memory, dropping of permanent errors.
	full, memoryless, dropping logline.Burst
	// late: the queue has logged its first drop after the time of the shutdown.
	late atomic.Bool
}

// newQueue returns a queue whose goroutine runs until Close.
func newQueue[T, D any](settings QueueSettings[T, D], signal signal[D]) *Queue[T, D] {
	q := &Queue[T, D]{
		settings: settings,
		signal:   signal,
		work:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		changed:  make(chan struct{}),
	}
	if settings.Memory != nil {
		q.requested = make(chan struct{}, 1)
		q.memory = settings.Memory.Open(budget.Settings{Shrink: q.requestBytes})
		q.shrinking.Go(q.shrinkOnRequest)
	}
	go q.run()
	return q
}

// Enqueue appends an entry to the queue, or drops and counts it. It drops each entry after Close. When the time of the
// shutdown is over, it drops an entry that does not fit. It reports whether the queue has the entry.
func (q *Queue[T, D]) Enqueue(entry T) (enqueued bool) {
	items, bytes := q.settings.Size(&entry)
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			q.dropLate(items)
			return false
		}
		hasRoom, err := q.hasRoom(items, bytes), error(nil)
		if hasRoom {
			err = q.reserve(bytes)
		}
		if hasRoom && err == nil {
			q.queue = append(q.queue, entry)
			q.items, q.bytes = q.items+items, q.bytes+bytes
			q.mu.Unlock()
			q.wake()
			return true
		}
		// Memory that other accounts hold is nothing to wait for.
		waits := q.mayWait() && (err == nil || q.bytes > 0)
		changed := q.changed
		q.mu.Unlock()
		if !waits {
			q.drop(items, err)
			return false
		}
		select {
		case <-changed:
		case <-q.settings.Context.Done():
			q.dropLate(items)
			return false
		}
	}
}

// Bytes returns the bytes that wait, plus those that the pipeline has now.
func (q *Queue[T, D]) Bytes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// Close sends the rest of the queue, and returns when that is sent or dropped. If the pipeline returns from its calls,
// this is soon after the time of the shutdown.
func (q *Queue[T, D]) Close() {
	q.mu.Lock()
	q.closed = true
	q.signalChange()
	q.mu.Unlock()
	q.wake()
	<-q.done
	q.shrinking.Wait()
}

// requestBytes notes that the budget wants bytes back. It runs in the goroutine of another account.
func (q *Queue[T, D]) requestBytes(bytes int64) {
	q.owed.Store(bytes)
	select {
	case q.requested <- struct{}{}:
	default:
	}
}

// shrinkOnRequest drops entries when the budget wants their memory back. Otherwise a pipeline that refuses would hold
// the memory, and the budget would disconnect peers that hold less than the queue.
func (q *Queue[T, D]) shrinkOnRequest() {
	for {
		select {
		case <-q.requested:
			q.dropOldest(q.owed.Swap(0))
		case <-q.done:
			return
		}
	}
}

// errGaveWay: another account needed the memory of the entries.
var errGaveWay = errors.New(budget.Setting + " is reached, and the queue holds more than others")

// dropOldest drops and counts the oldest entries until it has freed the bytes.
func (q *Queue[T, D]) dropOldest(bytes int64) {
	q.mu.Lock()
	n, items, freed := 0, 0, 0
	for n < len(q.queue) && int64(freed) < bytes {
		i, b := q.settings.Size(&q.queue[n])
		items, freed = items+i, freed+b
		n++
	}
	clear(q.queue[:n])
	q.queue = q.queue[n:]
	q.items, q.bytes = q.items-items, q.bytes-freed
	q.signalChange()
	q.mu.Unlock()
	if n > 0 {
		q.memory.Release(freed)
		q.dropMemoryless(items, errGaveWay)
	}
}

// hasRoom reports whether an entry fits. The lock is held.
func (q *Queue[T, D]) hasRoom(items, bytes int) bool {
	return (len(q.queue) == 0 || q.items+items <= q.settings.MaxItems) &&
		(q.bytes == 0 || q.bytes+bytes <= q.settings.MaxBytes)
}

// wake wakes the goroutine that sends.
func (q *Queue[T, D]) wake() {
	select {
	case q.work <- struct{}{}:
	default:
	}
}

// signalChange wakes all calls of Enqueue that wait for room. The lock is held.
func (q *Queue[T, D]) signalChange() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *Queue[T, D]) dropFull(items int) {
	q.settings.Dropped(items, DroppedQueueFull)
	since, due := q.full.Count(q.settings.Now())
	if !due {
		return
	}
	message := "The queue of " + q.signal.items + " is full: the receiver drops those that do not fit, until the queue is empty"
	if q.settings.Overflow == OverflowDropWhileRefused {
		message = "The pipeline refuses " + q.signal.items + " and their queue is full: the receiver drops those that do not fit, until the pipeline accepts them"
	}
	q.settings.Logger.Warn(message, zap.Int("drops_since_last_line", since),
		zap.Int(q.signal.maxItems, q.settings.MaxItems), zap.Int(q.signal.maxBytes, q.settings.MaxBytes))
}

// mayWait reports whether Enqueue may wait for room. The lock is held.
func (q *Queue[T, D]) mayWait() bool {
	return q.settings.Overflow == OverflowWait || q.settings.Overflow == OverflowDropWhileRefused && !q.refusing
}

// drop counts items that the memory budget refused with err or, if err is nil, that did not fit.
func (q *Queue[T, D]) drop(items int, err error) {
	if err != nil {
		q.dropMemoryless(items, err)
		return
	}
	q.dropFull(items)
}

// reserve reserves the memory of an entry in the budget.
func (q *Queue[T, D]) reserve(bytes int) error {
	if q.memory == nil {
		return nil
	}
	return q.memory.Reserve(bytes)
}

func (q *Queue[T, D]) dropMemoryless(items int, err error) {
	q.settings.Dropped(items, DroppedMemory)
	if since, due := q.memoryless.Count(q.settings.Now()); due {
		q.settings.Logger.Warn("The memory budget has no room for "+q.signal.items+": the receiver drops those that do not fit, until the queue is empty",
			zap.Int("drops_since_last_line", since), zap.Error(err))
	}
}

func (q *Queue[T, D]) run() {
	defer close(q.done)
	if q.memory != nil {
		defer q.memory.Close()
	}
	var entries []T
	for {
		items, bytes := 0, 0
		entries, items, bytes = q.next(entries[:0])
		if len(entries) == 0 {
			return
		}
		q.send(q.settings.Make(entries), items)
		clear(entries)
		if q.memory != nil {
			q.memory.Release(bytes)
		}
		q.mu.Lock()
		q.bytes -= bytes
		q.refusing = false
		if len(q.queue) == 0 {
			q.full.Over()
			q.memoryless.Over()
		}
		q.signalChange()
		q.mu.Unlock()
	}
}

// next waits for an entry, and moves entries for one call of the pipeline out of the queue. It returns none when the
// queue is closed and empty.
func (q *Queue[T, D]) next(entries []T) (moved []T, items, bytes int) {
	for {
		q.mu.Lock()
		if len(q.queue) > 0 {
			entries, items, bytes = q.moveOut(entries)
			q.items -= items
			q.signalChange()
			q.mu.Unlock()
			return entries, items, bytes
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return nil, 0, 0
		}
		<-q.work
	}
}

// moveOut moves entries for one call of the pipeline out of the queue. The lock is held.
func (q *Queue[T, D]) moveOut(entries []T) (moved []T, items, bytes int) {
	n := 0
	for n < len(q.queue) && n < q.settings.MaxAtOnce && bytes < maxBytesPerCall {
		i, b := q.settings.Size(&q.queue[n])
		items, bytes = items+i, bytes+b
		n++
	}
	entries = append(entries, q.queue[:n]...)
	clear(q.queue[:n])
	q.queue = q.queue[n:]
	return entries, items, bytes
}

// send calls the pipeline until it accepts the data, returns a permanent error, or the time of the shutdown is over.
func (q *Queue[T, D]) send(data D, items int) {
	ctx := q.signal.start(q.settings.Observer, q.settings.Context)
	err := q.try(ctx, data)
	switch {
	case err == nil:
		q.dropping.Over()
	case consumererror.IsPermanent(err):
		q.settings.Dropped(items, DroppedPermanent)
		if since, due := q.dropping.Count(q.settings.Now()); due {
			q.settings.Logger.Error("The pipeline refuses "+q.signal.items+" with a permanent error: the receiver drops them until the pipeline accepts some",
				zap.Int("number", items), zap.Int("drops_since_last_line", since), zap.Error(err))
		}
	default:
		q.dropLate(items)
	}
	q.signal.end(q.settings.Observer, ctx, q.settings.Format, items, err)
}

// dropLate counts items that no pipeline accepted before the time of the shutdown was over.
func (q *Queue[T, D]) dropLate(items int) {
	q.settings.Dropped(items, lateReason(q.settings.Context))
	if !q.late.Swap(true) {
		q.settings.Logger.Warn("The time of the shutdown is over: the receiver drops "+q.signal.items, zap.Int("number", items))
	}
}

// try calls the pipeline until it accepts the data, returns a permanent error, or the time of the shutdown is over.
func (q *Queue[T, D]) try(ctx context.Context, data D) error {
	pauses := backoff.New(q.settings.Retry)
	for {
		sent := data
		if q.signal.mutates() {
			// The pipeline may change the data before it refuses it.
			sent = q.signal.copyOf(data)
		}
		err := q.signal.consume(ctx, sent)
		if err == nil || consumererror.IsPermanent(err) {
			return err
		}
		q.refused()
		timer := time.NewTimer(pauses.Pause())
		select {
		case <-timer.C:
		case <-q.settings.Context.Done():
			timer.Stop()
			return err
		}
	}
}

// refused wakes calls of Enqueue that wait for room only while the pipeline accepts.
func (q *Queue[T, D]) refused() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.refusing {
		q.refusing = true
		q.signalChange()
	}
}
