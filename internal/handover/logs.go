// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/backoff"
)

// maxLogBytesAtOnce is how many bytes of log records are handed on at once; the last
// entry may exceed them.
const maxLogBytesAtOnce = 1 << 20

// Overflow is what becomes of log records that the queue has no room for.
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

// LogsSettings are what Logs are made of. All fields have to be set, but Overflow may
// be 0.
type LogsSettings[T any] struct {
	Settings
	Next consumer.Logs
	// MaxRecords is how many log records can wait, and MaxBytes how many bytes of
	// them, those included that are being handed on. An entry that is larger than a
	// bound fits where there is nothing else.
	MaxRecords, MaxBytes int
	Overflow             Overflow
	// MaxAtOnce is how many entries are handed on at once.
	MaxAtOnce int
	// Size is how many records an entry is, and how many bytes it has in memory, about.
	Size func(*T) (records, bytes int)
	// Logs makes of entries, of which there is at least one, what the pipeline takes.
	Logs func(entries []T) plog.Logs
	// Dropped counts log records that were dropped (DroppedQueueFull,
	// DroppedPermanent, DroppedShutdown).
	Dropped func(records int, reason string)
}

// Logs hands log records to the pipeline from a queue of its own, so that nothing else
// waits for a logs pipeline that refuses. What the queue has no room for is dropped and
// counted, or waits: see Overflow. An entry T is one record or several. It is for many
// goroutines.
type Logs[T any] struct {
	settings LogsSettings[T]
	// news says that the queue has something, or was closed.
	news chan struct{}
	done chan struct{}

	mu     sync.Mutex
	queue  []T
	closed bool
	// records are those in the queue; bytes those of what is being handed on, too.
	records, bytes int
	// refusing says that the pipeline refused what is being handed on.
	refusing bool
	// full says that a burst of dropping for it goes on, which is logged once.
	full bool
	// changed is closed, and made anew, when there may be room or nothing to wait for.
	changed chan struct{}

	// dropping says that a burst of what is refused for good goes on. It belongs to
	// the goroutine.
	dropping bool
	// late says that something was dropped because the time of the shutdown was over,
	// which is logged once.
	late atomic.Bool
}

// NewLogs makes a hand-over of log records and starts its goroutine, which Close ends.
func NewLogs[T any](settings LogsSettings[T]) *Logs[T] {
	l := &Logs[T]{
		settings: settings,
		news:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		changed:  make(chan struct{}),
	}
	go l.run()
	return l
}

// Add puts an entry into the queue, or drops and counts it. After Close, and where it
// would wait when the time of the shutdown is over, it drops it.
func (l *Logs[T]) Add(entry T) {
	records, bytes := l.settings.Size(&entry)
	for {
		l.mu.Lock()
		switch {
		case l.closed:
			l.mu.Unlock()
			l.dropLate(records)
			return
		case l.hasRoom(records, bytes):
			l.queue = append(l.queue, entry)
			l.records, l.bytes = l.records+records, l.bytes+bytes
			l.mu.Unlock()
			l.tell()
			return
		case l.settings.Overflow == OverflowDrop, l.settings.Overflow == OverflowDropWhileRefused && l.refusing:
			first := !l.full
			l.full = true
			l.mu.Unlock()
			l.dropFull(records, first)
			return
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-l.settings.Context.Done():
			l.dropLate(records)
			return
		}
	}
}

// Bytes is how many bytes of log records wait or are being handed on.
func (l *Logs[T]) Bytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Close hands on what is in the queue and waits for the end of it, which is not long
// after the time of the shutdown is over, if the pipeline returns.
func (l *Logs[T]) Close() {
	l.mu.Lock()
	l.closed = true
	l.change()
	l.mu.Unlock()
	l.tell()
	<-l.done
}

// hasRoom reports whether an entry fits. The lock is held.
func (l *Logs[T]) hasRoom(records, bytes int) bool {
	return (len(l.queue) == 0 || l.records+records <= l.settings.MaxRecords) &&
		(l.bytes == 0 || l.bytes+bytes <= l.settings.MaxBytes)
}

// tell tells the goroutine that there is something to do.
func (l *Logs[T]) tell() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// change tells everyone who waits for room that something is different. The lock is
// held.
func (l *Logs[T]) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Logs[T]) dropFull(records int, first bool) {
	l.settings.Dropped(records, DroppedQueueFull)
	if !first {
		return
	}
	message := "The queue of log records is full: a record is dropped, and so are others until the queue was empty"
	if l.settings.Overflow == OverflowDropWhileRefused {
		message = "The pipeline refuses log records and their queue is full: records are dropped, and so are others until it accepts them"
	}
	l.settings.Logger.Warn(message,
		zap.Int("limits.max_queued_logs", l.settings.MaxRecords), zap.Int("limits.max_queued_log_bytes", l.settings.MaxBytes))
}

func (l *Logs[T]) run() {
	defer close(l.done)
	var entries []T
	for {
		records, bytes := 0, 0
		entries, records, bytes = l.take(entries[:0])
		if len(entries) == 0 {
			return
		}
		l.handOn(l.settings.Logs(entries), records)
		clear(entries)
		l.mu.Lock()
		l.bytes -= bytes
		l.refusing = false
		if len(l.queue) == 0 {
			l.full = false
		}
		l.change()
		l.mu.Unlock()
	}
}

// take waits for something in the queue and moves to entries what can be handed on at
// once. There is nothing when the queue is closed and empty.
func (l *Logs[T]) take(entries []T) (taken []T, records, bytes int) {
	for {
		l.mu.Lock()
		if len(l.queue) > 0 {
			entries, records, bytes = l.gather(entries)
			l.records -= records
			l.change()
			l.mu.Unlock()
			return entries, records, bytes
		}
		closed := l.closed
		l.mu.Unlock()
		if closed {
			return nil, 0, 0
		}
		<-l.news
	}
}

// gather moves to entries what can be handed on at once. The lock is held.
func (l *Logs[T]) gather(entries []T) (taken []T, records, bytes int) {
	n := 0
	for n < len(l.queue) && n < l.settings.MaxAtOnce && bytes < maxLogBytesAtOnce {
		r, b := l.settings.Size(&l.queue[n])
		records, bytes = records+r, bytes+b
		n++
	}
	entries = append(entries, l.queue[:n]...)
	clear(l.queue[:n])
	l.queue = l.queue[n:]
	return entries, records, bytes
}

// handOn hands on logs until they are accepted, refused for good, or the time is over.
func (l *Logs[T]) handOn(logs plog.Logs, records int) {
	ctx := l.settings.Observer.StartLogsOp(l.settings.Context)
	err := l.try(ctx, logs)
	switch {
	case err == nil:
		l.dropping = false
	case consumererror.IsPermanent(err):
		l.settings.Dropped(records, DroppedPermanent)
		if !l.dropping {
			l.dropping = true
			l.settings.Logger.Error("Log records are dropped, and so are others until the next are accepted",
				zap.Int("records", records), zap.Error(err))
		}
	default:
		l.dropLate(records)
	}
	l.settings.Observer.EndLogsOp(ctx, l.settings.Format, records, err)
}

// dropLate counts what came or was not accepted before the time of the shutdown was
// over.
func (l *Logs[T]) dropLate(records int) {
	l.settings.Dropped(records, DroppedShutdown)
	if !l.late.Swap(true) {
		l.settings.Logger.Warn("The time of the shutdown is over: log records are dropped", zap.Int("records", records))
	}
}

// try gives logs to the pipeline until it accepts them, refuses them for good, or the
// time is over.
func (l *Logs[T]) try(ctx context.Context, logs plog.Logs) error {
	pauses := backoff.New(l.settings.Retry)
	for {
		given := logs
		if l.settings.Next.Capabilities().MutatesData {
			// It may change what it was given before it refuses.
			given = plog.NewLogs()
			logs.CopyTo(given)
		}
		err := l.settings.Next.ConsumeLogs(ctx, given)
		if err == nil || consumererror.IsPermanent(err) {
			return err
		}
		l.refused()
		timer := time.NewTimer(pauses.Pause())
		select {
		case <-timer.C:
		case <-l.settings.Context.Done():
			timer.Stop()
			return err
		}
	}
}

// refused lets those go who wait for room only while the pipeline accepts.
func (l *Logs[T]) refused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.refusing {
		l.refusing = true
		l.change()
	}
}
