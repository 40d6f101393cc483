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

// maxBytesAtOnce is how many bytes are handed on at once; the last entry may exceed
// them.
const maxBytesAtOnce = 1 << 20

// Overflow is what becomes of entries that the queue has no room for.
type Overflow uint8

const (
	// OverflowDrop drops them: whoever adds some never waits.
	OverflowDrop Overflow = iota
	// OverflowDropWhileRefused drops them while the pipeline refuses. As long as it
	// accepts, whoever adds some waits for room: their source can be read later.
	OverflowDropWhileRefused
	// OverflowWait lets whoever adds some wait for room.
	OverflowWait
)

// QueueSettings are what a Queue is made of. All fields have to be set, but Overflow may
// be 0.
type QueueSettings[T, D any] struct {
	Settings
	// MaxItems is how many items (log records, spans, samples) can wait, and MaxBytes
	// how many bytes of them, those included that are being handed on. An entry that is
	// larger than a bound fits where there is nothing else.
	MaxItems, MaxBytes int
	Overflow           Overflow
	// MaxAtOnce is how many entries are handed on at once.
	MaxAtOnce int
	// Size is how many items an entry is, and how many bytes it has in memory, about.
	Size func(*T) (items, bytes int)
	// Make makes of entries, of which there is at least one, what the pipeline takes.
	Make func(entries []T) D
	// Dropped counts items that were dropped (DroppedQueueFull, DroppedMemory,
	// DroppedPermanent, DroppedShutdown).
	Dropped func(items int, reason string)
}

// Queue hands entries T to the pipeline of one signal, which takes D, so that nothing
// else waits for a pipeline that refuses. What the queue has no room for is dropped and
// counted, or waits: see Overflow. An entry is one item or several. It is for many
// goroutines.
type Queue[T, D any] struct {
	settings QueueSettings[T, D]
	signal   signal[D]
	// news says that the queue has something, or was closed.
	news chan struct{}
	done chan struct{}
	// memory has the bytes, unless it is nil. owed is how many of them the budget asked for
	// last, and asked says that it did. giving is the goroutine that gives them.
	memory *budget.Account
	owed   atomic.Int64
	asked  chan struct{}
	giving sync.WaitGroup

	mu     sync.Mutex
	queue  []T
	closed bool
	// items are those in the queue; bytes those of what is being handed on, too.
	items, bytes int
	// refusing says that the pipeline refused what is being handed on.
	refusing bool
	// changed is closed, and made anew, when there may be room or nothing to wait for.
	changed chan struct{}

	// full is a burst of what had no room, memoryless of what had no memory, and dropping
	// of what was refused for good.
	full, memoryless, dropping logline.Burst
	// late says that something was dropped because the time of the shutdown was over,
	// which is logged once.
	late atomic.Bool
}

// newQueue makes a queue and starts its goroutine, which Close ends.
func newQueue[T, D any](settings QueueSettings[T, D], signal signal[D]) *Queue[T, D] {
	q := &Queue[T, D]{
		settings: settings,
		signal:   signal,
		news:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		changed:  make(chan struct{}),
	}
	if settings.Memory != nil {
		q.asked = make(chan struct{}, 1)
		q.memory = settings.Memory.Open(budget.Settings{Shrink: q.ask})
		q.giving.Go(q.give)
	}
	go q.run()
	return q
}

// Add puts an entry into the queue, or drops and counts it. After Close, and where it
// would wait when the time of the shutdown is over, it drops it. It reports whether the
// queue took it.
func (q *Queue[T, D]) Add(entry T) (taken bool) {
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
			err = q.takeMemory(bytes)
		}
		if hasRoom && err == nil {
			q.queue = append(q.queue, entry)
			q.items, q.bytes = q.items+items, q.bytes+bytes
			q.mu.Unlock()
			q.tell()
			return true
		}
		// What others hold is nothing to wait for.
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

// Bytes is how many bytes wait or are being handed on.
func (q *Queue[T, D]) Bytes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// Close hands on what is in the queue and waits for the end of it, which is not long
// after the time of the shutdown is over, if the pipeline returns.
func (q *Queue[T, D]) Close() {
	q.mu.Lock()
	q.closed = true
	q.change()
	q.mu.Unlock()
	q.tell()
	<-q.done
	q.giving.Wait()
}

// ask notes that the budget wants bytes back. It runs in the goroutine of another account.
func (q *Queue[T, D]) ask(bytes int64) {
	q.owed.Store(bytes)
	select {
	case q.asked <- struct{}{}:
	default:
	}
}

// give drops entries when the budget wants their memory back. A pipeline that refuses would keep
// it, and peers that hold less than the queue would have to give way for it.
func (q *Queue[T, D]) give() {
	for {
		select {
		case <-q.asked:
			q.dropOldest(q.owed.Swap(0))
		case <-q.done:
			return
		}
	}
}

// errGaveWay: the memory of entries was needed elsewhere.
var errGaveWay = errors.New(budget.Setting + " is reached, and the queue holds more than others")

// dropOldest drops and counts the oldest entries, until so many bytes are free.
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
	q.change()
	q.mu.Unlock()
	if n > 0 {
		q.memory.Give(freed)
		q.dropMemoryless(items, errGaveWay)
	}
}

// hasRoom reports whether an entry fits. The lock is held.
func (q *Queue[T, D]) hasRoom(items, bytes int) bool {
	return (len(q.queue) == 0 || q.items+items <= q.settings.MaxItems) &&
		(q.bytes == 0 || q.bytes+bytes <= q.settings.MaxBytes)
}

// tell tells the goroutine that there is something to do.
func (q *Queue[T, D]) tell() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// change tells everyone who waits for room that something is different. The lock is
// held.
func (q *Queue[T, D]) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *Queue[T, D]) dropFull(items int) {
	q.settings.Dropped(items, DroppedQueueFull)
	since, say := q.full.Say(q.settings.Now())
	if !say {
		return
	}
	message := "The queue of " + q.signal.items + " is full: some are dropped, and so are others until it was empty"
	if q.settings.Overflow == OverflowDropWhileRefused {
		message = "The pipeline refuses " + q.signal.items + " and their queue is full: some are dropped, and so are others until it accepts them"
	}
	q.settings.Logger.Warn(message, zap.Int("drops_since_last_line", since),
		zap.Int(q.signal.maxItems, q.settings.MaxItems), zap.Int(q.signal.maxBytes, q.settings.MaxBytes))
}

// mayWait reports whether the caller of Add may wait for room. The lock is held.
func (q *Queue[T, D]) mayWait() bool {
	return q.settings.Overflow == OverflowWait || q.settings.Overflow == OverflowDropWhileRefused && !q.refusing
}

// drop counts items that there is no room for or, if err says so, no memory.
func (q *Queue[T, D]) drop(items int, err error) {
	if err != nil {
		q.dropMemoryless(items, err)
		return
	}
	q.dropFull(items)
}

// takeMemory takes the memory of an entry, if there is any.
func (q *Queue[T, D]) takeMemory(bytes int) error {
	if q.memory == nil {
		return nil
	}
	return q.memory.Take(bytes)
}

func (q *Queue[T, D]) dropMemoryless(items int, err error) {
	q.settings.Dropped(items, DroppedMemory)
	if since, say := q.memoryless.Say(q.settings.Now()); say {
		q.settings.Logger.Warn("There is no memory for "+q.signal.items+": some are dropped, and so are others until the queue was empty",
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
		entries, items, bytes = q.take(entries[:0])
		if len(entries) == 0 {
			return
		}
		q.handOn(q.settings.Make(entries), items)
		clear(entries)
		if q.memory != nil {
			q.memory.Give(bytes)
		}
		q.mu.Lock()
		q.bytes -= bytes
		q.refusing = false
		if len(q.queue) == 0 {
			q.full.Over()
			q.memoryless.Over()
		}
		q.change()
		q.mu.Unlock()
	}
}

// take waits for something in the queue and moves to entries what can be handed on at
// once. There is nothing when the queue is closed and empty.
func (q *Queue[T, D]) take(entries []T) (taken []T, items, bytes int) {
	for {
		q.mu.Lock()
		if len(q.queue) > 0 {
			entries, items, bytes = q.gather(entries)
			q.items -= items
			q.change()
			q.mu.Unlock()
			return entries, items, bytes
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return nil, 0, 0
		}
		<-q.news
	}
}

// gather moves to entries what can be handed on at once. The lock is held.
func (q *Queue[T, D]) gather(entries []T) (taken []T, items, bytes int) {
	n := 0
	for n < len(q.queue) && n < q.settings.MaxAtOnce && bytes < maxBytesAtOnce {
		i, b := q.settings.Size(&q.queue[n])
		items, bytes = items+i, bytes+b
		n++
	}
	entries = append(entries, q.queue[:n]...)
	clear(q.queue[:n])
	q.queue = q.queue[n:]
	return entries, items, bytes
}

// handOn hands on data until it is accepted, refused for good, or the time is over.
func (q *Queue[T, D]) handOn(data D, items int) {
	ctx := q.signal.start(q.settings.Observer, q.settings.Context)
	err := q.try(ctx, data)
	switch {
	case err == nil:
		q.dropping.Over()
	case consumererror.IsPermanent(err):
		q.settings.Dropped(items, DroppedPermanent)
		if since, say := q.dropping.Say(q.settings.Now()); say {
			q.settings.Logger.Error("Some "+q.signal.items+" are dropped, and so are others until the next are accepted",
				zap.Int("number", items), zap.Int("drops_since_last_line", since), zap.Error(err))
		}
	default:
		q.dropLate(items)
	}
	q.signal.end(q.settings.Observer, ctx, q.settings.Format, items, err)
}

// dropLate counts what came or was not accepted before the time of the shutdown was
// over.
func (q *Queue[T, D]) dropLate(items int) {
	q.settings.Dropped(items, lateReason(q.settings.Context))
	if !q.late.Swap(true) {
		q.settings.Logger.Warn("The time of the shutdown is over: "+q.signal.items+" are dropped", zap.Int("number", items))
	}
}

// try gives data to the pipeline until it accepts it, refuses it for good, or the time
// is over.
func (q *Queue[T, D]) try(ctx context.Context, data D) error {
	pauses := backoff.New(q.settings.Retry)
	for {
		given := data
		if q.signal.mutates() {
			// It may change what it was given before it refuses.
			given = q.signal.copyOf(data)
		}
		err := q.signal.consume(ctx, given)
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

// refused lets those go who wait for room only while the pipeline accepts.
func (q *Queue[T, D]) refused() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.refusing {
		q.refusing = true
		q.change()
	}
}
