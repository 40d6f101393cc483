// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"errors"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// sessionLines are the lines of a session that what a relay daemon says can bring very
// often: each is said at once and then seldom, with how often it would have been since.
type sessionLines struct {
	bad, leftOut, unreadable, cleared logline.Seldom
	overtaken, noRoom, cannotPack     logline.Seldom
	// disconnected and refused end when the session is attached.
	disconnected, refused logline.Burst
}

// attached ends what kept the session from being attached.
func (l *sessionLines) attached() {
	l.disconnected.Over()
	l.refused.Over()
}

// sometimes logs a warning if it is its turn.
func sometimes(line *logline.Seldom, now time.Time, logger *zap.Logger, message string, fields ...zap.Field) {
	if since, say := line.Say(now); say {
		logger.Warn(message, append(fields, zap.Int("since_last", since))...)
	}
}

// sharedLines are the lines that all sessions share: a relay daemon may tell of others
// in each list. Some of each kind are said at once and then seldom; the others are for
// those who debug.
type sharedLines struct {
	notLive, tooMany       logline.Seldom
	attached, closed, gone logline.Seldom
	memory                 logline.Seldom
}

// sessionsAloud is how many sessions are said to begin and to end in 10 seconds: more than
// somebody starts by hand.
const sessionsAloud = 20

// ordinary lets lines that nothing is wrong with be said of some sessions at once.
func (l *sharedLines) ordinary() {
	for _, line := range []*logline.Seldom{&l.attached, &l.closed, &l.gone} {
		line.Most = sessionsAloud
	}
}

// said logs one of them.
func (e *environment) said(line *logline.Seldom, logger *zap.Logger, level zapcore.Level, message string, fields ...zap.Field) {
	since, say := line.Say(e.now())
	if !say {
		logger.Debug(message, fields...)
		return
	}
	logger.Log(level, message, append(fields, zap.Int("since_last", since))...)
}

// saidNoNames says why functions of an object go by their offsets.
func (e *environment) saidNoNames(object string, err error) {
	message := "Functions of an object have no names"
	if errors.Is(err, symbols.ErrNoFile) {
		message += ": its file is in none of symbol_paths. Add the directory that has it under that path: / where the program runs, or a copy of that machine's root"
	}
	e.logger.Info(message, zap.String("object", object), zap.Error(err))
}

// cannotPack says that the call events of a process are lost.
func (f *follower) cannotPack(err error) {
	if since, say := f.lines.cannotPack.Say(f.env.now()); say {
		f.logger.Error("Call events of a process cannot be packed", zap.Error(err), zap.Int("since_last", since))
	}
}

// saidCleared says that recorded packets were removed.
func (f *follower) saidCleared(t *trace, s *stream, packets uint64) {
	if since, say := f.lines.cleared.Say(f.env.now()); say {
		f.logger.Info("The session was cleared, or its files were written round: packets are gone that had not been read",
			zap.String("trace", t.key), zap.String("stream", s.key), zap.Uint64("packets", packets), zap.Int("since_last", since))
	}
}

// saidLeftOut says that a packet is passed over from now on.
func (f *follower) saidLeftOut(s *stream, p packetTimes) {
	sometimes(&f.lines.leftOut, f.env.now(), f.logger, "A packet is left out",
		zap.String("stream", s.key), zap.Uint64("begin", p.begin), zap.Uint64("end", p.end))
}

// saidUnreadable says that the relay daemon can't give more of a stream.
func (f *follower) saidUnreadable(s *stream, err error) {
	sometimes(&f.lines.unreadable, f.env.now(), f.logger, "A stream cannot be read further", zap.String("stream", s.key), zap.Error(err))
}

// saidOvertaken says that others no longer wait for a stream.
func (f *follower) saidOvertaken(s *stream) {
	sometimes(&f.lines.overtaken, f.env.now(), f.logger, "A stream says nothing: others no longer wait for it",
		zap.String("stream", s.key), zap.Duration("max_delay", f.env.config.MaxDelay))
}

// saidNoRoom says that others don't wait for a stream whose packet has no room.
func (f *follower) saidNoRoom(s *stream) {
	sometimes(&f.lines.noRoom, f.env.now(), f.logger, "The next packet of a stream has no room: others no longer wait for it. Raise limits.max_waiting_bytes to the size of a packet of all streams together, twice",
		zap.String("stream", s.key), zap.Int("max_waiting_bytes", f.env.config.Limits.MaxWaitingBytes))
}
