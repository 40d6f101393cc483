// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
)

// logParcel is log records of one session on their way to the pipeline.
type logParcel struct {
	logs    plog.Logs
	records int
	bytes   int
}

// logSink hands log records to the pipeline from a queue of its own, so that spans
// don't wait for a logs pipeline that refuses: what the queue has no room for is then
// dropped and counted. As long as the pipeline accepts, and where there are no spans
// to wait, whoever adds records waits for room instead: a recording is read as fast as
// both can take it, and the relay daemon keeps the rest.
type logSink struct {
	env  *environment
	next consumer.Logs
	done chan struct{}

	mu     sync.Mutex
	queue  []logParcel
	closed bool
	// records and bytes are those of what waits and of what is being handed on.
	records, bytes int
	// refusing says that the pipeline refused what is being handed on.
	refusing bool
	// full says that a burst of dropping goes on, which is logged once.
	full bool
	// changed is closed, and made anew, when any of these change.
	changed chan struct{}

	// dropping says that a burst of what is refused for good goes on. It belongs to run.
	dropping bool
}

func newLogSink(env *environment, next consumer.Logs) *logSink {
	s := &logSink{env: env, next: next, done: make(chan struct{}), changed: make(chan struct{})}
	go s.run()
	return s
}

// change tells everyone who waits that something is different. The lock is held.
func (s *logSink) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// add puts records into the queue, or drops them.
func (s *logSink) add(p logParcel) {
	for {
		s.mu.Lock()
		if s.closed || s.env.ctx.Err() != nil {
			s.mu.Unlock()
			s.env.telemetry.logRecordsDropped(p.records, droppedShutdown)
			return
		}
		if s.hasRoom(p) {
			s.queue = append(s.queue, p)
			s.records, s.bytes = s.records+p.records, s.bytes+p.bytes
			s.change()
			s.mu.Unlock()
			return
		}
		if s.refusing && s.env.traces != nil {
			first := !s.full
			s.full = true
			s.mu.Unlock()
			s.dropFull(p, first)
			return
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-s.env.ctx.Done():
		}
	}
}

// hasRoom reports whether records fit. What alone is more than the bounds fits into an
// empty queue.
func (s *logSink) hasRoom(p logParcel) bool {
	limits := &s.env.config.Limits
	return s.records == 0 || s.records+p.records <= limits.MaxQueuedLogs && s.bytes+p.bytes <= limits.MaxQueuedLogBytes
}

func (s *logSink) dropFull(p logParcel, first bool) {
	s.env.telemetry.logRecordsDropped(p.records, droppedQueueFull)
	if first {
		limits := &s.env.config.Limits
		s.env.logger.Warn("The pipeline refuses log records and their queue is full: records are dropped, and so are others until it accepts them",
			zap.Int("limits.max_queued_logs", limits.MaxQueuedLogs), zap.Int("limits.max_queued_log_bytes", limits.MaxQueuedLogBytes))
	}
}

// stop hands on what is in the queue and waits for the end of it.
func (s *logSink) stop() {
	s.mu.Lock()
	s.closed = true
	s.change()
	s.mu.Unlock()
	<-s.done
}

func (s *logSink) run() {
	defer close(s.done)
	for {
		p, ok := s.take()
		if !ok {
			return
		}
		s.handOn(p)
		s.mu.Lock()
		s.records, s.bytes = s.records-p.records, s.bytes-p.bytes
		s.refusing = false
		if len(s.queue) == 0 {
			s.full = false
		}
		s.change()
		s.mu.Unlock()
	}
}

// take waits for something in the queue. It reports false when the queue is closed and
// empty.
func (s *logSink) take() (logParcel, bool) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			p := s.queue[0]
			s.queue[0] = logParcel{}
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return p, true
		}
		closed, changed := s.closed, s.changed
		s.mu.Unlock()
		if closed {
			return logParcel{}, false
		}
		<-changed
	}
}

// handOn hands on records until they are accepted, refused for good, or the time is
// over.
func (s *logSink) handOn(p logParcel) {
	ctx := s.env.observer.StartLogsOp(s.env.ctx)
	backoff := backoff{RetryConfig: s.env.config.Retry}
	for {
		// A consumer may change what it was given before it refuses.
		try := p.logs
		if s.next.Capabilities().MutatesData {
			try = plog.NewLogs()
			p.logs.CopyTo(try)
		}
		err := s.next.ConsumeLogs(ctx, try)
		if err == nil || consumererror.IsPermanent(err) {
			s.handedOn(p.records, err)
			s.env.observer.EndLogsOp(ctx, formatLTTng, p.records, err)
			return
		}
		s.refused()
		timer := time.NewTimer(backoff.pause())
		select {
		case <-timer.C:
			continue
		case <-s.env.ctx.Done():
		}
		timer.Stop()
		s.env.telemetry.logRecordsDropped(p.records, droppedShutdown)
		s.env.observer.EndLogsOp(ctx, formatLTTng, p.records, err)
		return
	}
}

func (s *logSink) refused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.refusing {
		s.refusing = true
		s.change()
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
