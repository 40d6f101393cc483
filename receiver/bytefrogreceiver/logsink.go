// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
)

// maxLogBatch and maxLogBatchBytes are how many log records, and bytes of them, are
// handed on at once; the last record may exceed the bytes.
const (
	maxLogBatch      = 1000
	maxLogBatchBytes = mib
)

// logSink hands log records to the pipeline from a queue of its own: whoever adds
// one never waits. What the queue has no room for is dropped and counted.
type logSink struct {
	env  *environment
	next consumer.Logs
	// queue has what waits; adding is barred by mu once it is closed.
	mu     sync.RWMutex
	closed bool
	queue  chan logRecord
	// memory has the bytes of what waits and of what is being handed on.
	memory budget
	done   chan struct{}
	// full and dropping say that a burst of it goes on, which is logged once: of
	// records that find the queue full, and of those that are refused for good.
	full     atomic.Bool
	dropping bool
}

func newLogSink(env *environment, next consumer.Logs) *logSink {
	limits := &env.config.Limits
	s := &logSink{
		env: env, next: next, queue: make(chan logRecord, limits.MaxQueuedLogs),
		memory: budget{limit: int64(limits.MaxQueuedLogBytes)}, done: make(chan struct{}),
	}
	go s.run()
	return s
}

func (s *logSink) add(l logRecord) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		s.env.telemetry.logRecordsDropped(1, droppedShutdown)
		return
	}
	if s.enqueue(l) {
		return
	}
	s.env.telemetry.logRecordsDropped(1, droppedQueueFull)
	if !s.full.Swap(true) {
		s.env.logger.Warn("The queue of log records is full: a record is dropped, and so are others until the queue was empty",
			zap.Int("limits.max_queued_logs", cap(s.queue)), zap.Int64("limits.max_queued_log_bytes", s.memory.limit))
	}
}

// enqueue reports whether the queue had room for a record.
func (s *logSink) enqueue(l logRecord) bool {
	size := l.size()
	if !s.memory.take(size) {
		return false
	}
	select {
	case s.queue <- l:
		return true
	default:
		s.memory.give(size)
		return false
	}
}

// stop hands on what is in the queue and waits for the end of it.
func (s *logSink) stop() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	s.mu.Unlock()
	<-s.done
}

func (s *logSink) run() {
	defer close(s.done)
	batch := make([]logRecord, 0, maxLogBatch)
	for l := range s.queue {
		var size int
		batch, size = s.gather(append(batch[:0], l))
		s.handOn(s.logs(batch))
		clear(batch)
		s.memory.give(size)
		if len(s.queue) == 0 {
			s.full.Store(false)
		}
	}
}

// gather adds to a batch with one record what else is in the queue, as far as it can
// be handed on at once, and says how many bytes all have.
func (s *logSink) gather(batch []logRecord) (all []logRecord, size int) {
	size = batch[0].size()
	for len(batch) < maxLogBatch && size < maxLogBatchBytes {
		select {
		case l, ok := <-s.queue:
			if !ok {
				return batch, size
			}
			batch = append(batch, l)
			size += l.size()
		default:
			return batch, size
		}
	}
	return batch, size
}

// logs makes of records what the pipeline takes: those of one run that stand
// together share a resource.
func (s *logSink) logs(batch []logRecord) plog.Logs {
	logs := plog.NewLogs()
	var records plog.LogRecordSlice
	var of *origin
	for i := range batch {
		l := &batch[i]
		if l.origin != of {
			of = l.origin
			resource := logs.ResourceLogs().AppendEmpty()
			of.resource.CopyTo(resource.Resource())
			scope := resource.ScopeLogs().AppendEmpty()
			setScope(scope.Scope(), s.env.build)
			records = scope.LogRecords()
		}
		l.to(records.AppendEmpty())
	}
	return logs
}

// handOn hands on logs until they are accepted, refused for good, or the time is
// over.
func (s *logSink) handOn(logs plog.Logs) {
	n := logs.LogRecordCount()
	ctx := s.env.observer.StartLogsOp(s.env.ctx)
	pause := s.env.config.Retry.InitialInterval
	for {
		// A consumer may change what it was given before it refuses.
		try := plog.NewLogs()
		logs.CopyTo(try)
		err := s.next.ConsumeLogs(ctx, try)
		if err == nil || consumererror.IsPermanent(err) {
			s.handedOn(n, err)
			s.env.observer.EndLogsOp(ctx, formatBytefrog, n, err)
			return
		}
		timer := time.NewTimer(min(pause/2+rand.N(pause), s.env.config.Retry.MaxInterval))
		select {
		case <-timer.C:
			pause = min(2*pause, s.env.config.Retry.MaxInterval)
			continue
		case <-s.env.ctx.Done():
		}
		timer.Stop()
		s.env.telemetry.logRecordsDropped(n, droppedShutdown)
		s.env.observer.EndLogsOp(ctx, formatBytefrog, n, err)
		return
	}
}

func (s *logSink) handedOn(n int, err error) {
	if err == nil {
		s.dropping = false
		return
	}
	s.env.telemetry.logRecordsDropped(n, droppedPermanent)
	if !s.dropping {
		s.dropping = true
		s.env.logger.Error("Log records are dropped, and so are others until the next are accepted", zap.Int("records", n), zap.Error(err))
	}
}
