// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
)

// maxLogBatch is how many log records are handed on at once.
const maxLogBatch = 1000

// logSink hands log records to the pipeline from a queue of its own: whoever adds
// one never waits. What the queue has no room for is dropped and counted.
type logSink struct {
	env  *environment
	next consumer.Logs
	// queue has what waits; adding is barred by mu once it is closed.
	mu     sync.RWMutex
	closed bool
	queue  chan logRecord
	done   chan struct{}
	// dropping says that a burst of it goes on, which is logged once.
	dropping bool
}

func newLogSink(env *environment, next consumer.Logs) *logSink {
	s := &logSink{env: env, next: next, queue: make(chan logRecord, env.config.Limits.MaxQueuedLogs), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *logSink) add(l logRecord) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.closed {
		select {
		case s.queue <- l:
			return
		default:
		}
	}
	s.env.telemetry.logRecordsDropped(1, droppedQueueFull)
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
		batch = append(batch[:0], l)
		for more := true; more && len(batch) < maxLogBatch; {
			select {
			case l, ok := <-s.queue:
				if more = ok; ok {
					batch = append(batch, l)
				}
			default:
				more = false
			}
		}
		s.handOn(s.logs(batch))
		clear(batch)
	}
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
		timer := time.NewTimer(pause/2 + rand.N(pause))
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
