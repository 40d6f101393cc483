// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package session reads one session of a relay daemon, or one recorded trace, over any number of connections. Another
// package has the connections to files.
//
//	connection.go  what a session needs of the place that has its data; relay.go is a relay daemon
//	session.go     the life of a session: connect, attach, read, pause, repeat
//	attachment.go  one connection: streams, metadata and packets arrive; source.go is one trace on it
//	recording.go   data that outlives connections: traces, processes, positions
//	trace.go       one CTF trace and its streams, merged by time
//	               buffers.go, endedstreams.go, memory.go, lines.go, state.go
//	environment.go shared by all sessions
//
// A session's life:
//
//	connect, attach ──► read ──► closed
//	   ▲        │         │
//	   │        └────┬────┘
//	   │             ├──► session gone, or shutdown
//	   └── pause ◄───┘ connection lost, refused, bad data, no memory
//
// One goroutine does all the work of a session.
package session

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/process"
)

// Session reads one session. Run does it. Other goroutines may use Done, State and, after Done, WasClosed.
type Session struct {
	env       *Environment
	lines     *lines
	recording *recording
	opened    time.Time
	// backoff is for connections and bad data, detached for a session that had no memory.
	backoff, detached *backoff.Backoff
	// attached is set if the session was attached before. interrupted is set if a line since then reported that it is
	// no longer attached.
	attached, interrupted bool

	// done is closed at the end. closed is set if the session was closed, so it has no more events while the relay
	// daemon still lists it. failed is the error that ended it.
	done   chan struct{}
	closed bool
	failed error
}

// NewOf returns a session of a subject.
func NewOf(env *Environment, of Subject) *Session {
	l := newLines(env.Logger.With(zap.String(of.Kind, of.Name)), env.Now)
	return &Session{
		env: env, lines: l, recording: newRecording(env, of, l), opened: env.Now(),
		backoff: backoff.New(env.Settings.Reconnect), detached: backoff.New(detachedRetry(env.Settings.Reconnect)),
		done: make(chan struct{}),
	}
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// IsDone reports whether the session has ended.
func (s *Session) IsDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// WasClosed reports whether the session was closed in LTTng. Call it after Done.
func (s *Session) WasClosed() bool { return s.closed }

// Err returns the error that ended the session, after Done.
func (s *Session) Err() error { return s.failed }

// Traces returns the number of CTF traces that are read, after Done.
func (s *Session) Traces() int { return len(s.recording.traces) }

// State returns the session's state for metrics.
func (s *Session) State() State {
	r := s.recording
	// Sessions of several users may have the same name.
	o := process.Origin{
		Settings: s.env.Process, Host: r.host, Session: r.session,
		ID: process.StreamID(fmt.Sprint(r.id, " ", r.host, "/", r.session), s.env.Settings.Endpoint, process.Key{}, 0),
	}
	state := State{Resource: o.Resource(), Opened: s.opened, Processes: r.group.Processes()}
	r.counts.write(&state)
	return state
}

// Run reads the session until it ends.
func (s *Session) Run() {
	defer close(s.done)
	r := s.recording
	defer r.memory.close()
	defer r.health.Remove()
	for {
		if r.memory.account == nil {
			r.openMemory()
		}
		err := s.attach()
		if !r.group.HasAbandoned() {
			r.group.Flush()
		}
		switch {
		case errors.Is(err, errStopping) || s.env.IsStopping():
			s.finish(callevent.CauseShutdown)
			return
		case errors.Is(err, errClosed):
			s.closed = true
			s.env.LogSeldom(&s.env.seldom.closed, s.lines.logger, zap.InfoLevel, r.subject.Words.Closed)
			s.finish(callevent.CauseEnded)
			return
		case errors.Is(err, errGone):
			s.env.LogSeldom(&s.env.seldom.gone, s.lines.logger, zap.InfoLevel, r.subject.Words.Gone)
			s.finish(callevent.CauseDisconnected)
			return
		}
		if !r.memory.isAsked() {
			pause := s.backoff.Pause()
			s.logFailure(err, pause)
			if r.subject.Once {
				s.failed = err
				s.finish(callevent.CauseBadData)
				return
			}
			r.save()
			if r.memory.pause(pause) {
				continue
			}
		}
		if !s.env.IsStopping() {
			s.freeMemory(r.memory.reason())
			if s.env.Pause(s.detachedPause()) {
				continue
			}
			r.openMemory() // the session holds no memory now
		}
		s.finish(callevent.CauseShutdown)
		return
	}
}

// finish delivers the rest of the session.
func (s *Session) finish(cause callevent.Cause) {
	s.recording.finish(cause)
	last := s.State()
	last.Ended, last.Streams, last.Processes = true, 0, 0
	s.env.Ended(last)
}

// logFailure logs why the session is not read until it is attached again.
func (s *Session) logFailure(err error, pause time.Duration) {
	var bad *badData
	var refused *lttnglive.StatusError
	words := s.recording.subject.Words
	now := s.env.Now()
	switch {
	case errors.As(err, &bad):
		s.env.Telemetry.BadData(bad.what)
		s.recording.health.Failed(err)
		if since, due := s.lines.badData.Count(now); due {
			s.interrupted = true
			again := zap.Duration("again_in", pause)
			if s.recording.subject.Once {
				again = zap.Skip()
			}
			s.lines.logger.Error(words.Unreadable, zap.String("what", bad.what), zap.Error(bad.err), again, zap.Int("times_since_last_line", since))
		}
	case errors.As(err, &refused):
		s.recording.health.Failed(err)
		if since, due := s.lines.refused.Count(now); due {
			s.interrupted = true
			s.lines.logger.Warn(words.Refused, zap.Error(err), zap.Int("times_since_last_line", since))
		}
	default:
		s.env.Telemetry.ConnectionFailed()
		if since, due := s.lines.disconnected.Count(now); due {
			s.interrupted = true
			s.lines.logger.Warn(words.Disconnected, zap.Error(err), zap.Int("times_since_last_line", since))
		}
	}
}

// attach connects, attaches the session and reads it until it cannot be read any longer. The error is the reason for
// the end.
func (s *Session) attach() error {
	r := s.recording
	ctx := r.memory.reading
	conn, streams, err := r.subject.Attach(ctx, r.memory.charge, r.hasRead())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	s.logAttached(conn)
	s.env.Telemetry.Sessions(1)
	defer s.env.Telemetry.Sessions(-1)
	r.held += s.env.Now().Sub(r.stopped)
	defer func() { r.stopped = s.env.Now() }()
	a := newAttachment(ctx, r, conn, s.backoff)
	r.attachedAt = s.env.Now()
	err = a.read(streams)
	if r.memory.isAsked() {
		r.abandon()
	}
	a.detach(err)
	return err
}

// logAttached logs that the session is attached.
func (s *Session) logAttached(conn Connection) {
	s.lines.endBursts()
	words := s.recording.subject.Words
	switch {
	case !s.attached:
		s.env.LogSeldom(&s.env.seldom.attached, s.lines.logger, zap.InfoLevel, words.Attached, conn.Fields()...)
	case s.interrupted:
		s.lines.logger.Info(words.Again, conn.Fields()...)
	default:
		s.lines.logger.Debug(words.Again, conn.Fields()...)
	}
	s.attached, s.interrupted = true, false
}

// freeMemory frees the memory of the session, because the budget needs it.
func (s *Session) freeMemory(why error) {
	r := s.recording
	r.abandon() // unless attach did it
	r.group.DeliverAbandoned()
	r.memory.close()
	s.env.Telemetry.SessionDetached(process.DroppedMemory)
	if since, due := s.env.seldom.detached.Count(s.env.Now()); due {
		s.lines.logger.Warn(r.subject.Words.Detached,
			zap.Error(why), zap.Int("times_since_last_line", since))
	}
	// Log records wait until the pipeline has room: at most one batch.
	r.group.FlushLogs()
}

// firstDetachedPause is the first pause of a session that had no memory.
const firstDetachedPause = time.Second

// detachedRetry returns the pauses of a session that had no memory.
func detachedRetry(reconnect backoff.Config) backoff.Config {
	reconnect.InitialInterval = min(max(reconnect.InitialInterval, firstDetachedPause), reconnect.MaxInterval)
	return reconnect
}

// detachedPause returns the pause until a session that had no memory is attached again. It grows, unless
// the session was read for a long time.
func (s *Session) detachedPause() time.Duration {
	if s.env.Now().Sub(s.recording.attachedAt) > 2*s.env.Settings.Reconnect.MaxInterval {
		s.detached.Reset()
	}
	return s.detached.Pause()
}
