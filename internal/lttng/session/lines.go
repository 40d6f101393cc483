// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// lines are the log lines of a session. A relay daemon can cause some of them very often: these are
// logged immediately and then seldom, with their number since the last time.
type lines struct {
	logger *zap.Logger
	now    func() time.Time

	badData, leftOut, unreadable logline.Seldom
	cleared, overtaken, noRoom   logline.Seldom
	cut, other                   logline.Seldom
	// disconnected and refused end when the session is attached.
	disconnected, refused logline.Burst
	// warned has the warnings that are logged once.
	warned map[string]bool
}

func newLines(logger *zap.Logger, now func() time.Time) *lines {
	return &lines{logger: logger, now: now, warned: map[string]bool{}}
}

// endBursts ends the reasons why the session was not attached.
func (l *lines) endBursts() {
	l.disconnected.Over()
	l.refused.Over()
}

func (l *lines) warnSeldom(line *logline.Seldom, message string, fields ...zap.Field) {
	if since, due := line.Count(l.now()); due {
		l.logger.Warn(message, append(fields, zap.Int("times_since_last_line", since))...)
	}
}

func (l *lines) warnOnce(what, message string, fields ...zap.Field) {
	if !l.warned[what] {
		l.warned[what] = true
		l.logger.Warn(message, fields...)
	}
}

const buffersForUsers = "No data is lost with buffers for each user: lttng enable-channel --userspace --buffers-uid"

func (l *lines) warnPerProcess() {
	l.warnOnce("per process", "The session has buffers for each process: if a process ends before its data is read, the relay daemon can drop the data. "+buffersForUsers)
}

func (l *lines) warnStreamCut(of, process string) {
	l.warnSeldom(&l.cut, "A stream ended before the relay daemon sent its last packet: the last events of a process are missing. "+buffersForUsers,
		zap.String("stream", of), zap.String("process", process))
}

func (l *lines) logCleared(traceKey, of string, packets uint64) {
	if since, due := l.cleared.Count(l.now()); due {
		l.logger.Info("The session was cleared, or its files were overwritten: unread packets are lost",
			zap.String("trace", traceKey), zap.String("stream", of), zap.Uint64("packets", packets), zap.Int("times_since_last_line", since))
	}
}

func (l *lines) warnLeftOut(of string, begin, end uint64) {
	l.warnSeldom(&l.leftOut, "A packet is skipped", zap.String("stream", of), zap.Uint64("begin", begin), zap.Uint64("end", end))
}

func (l *lines) warnUnreadable(of string, err error) {
	l.warnSeldom(&l.unreadable, "A stream cannot be read further", zap.String("stream", of), zap.Error(err))
}

func (l *lines) warnOvertaken(of string, maxDelay time.Duration) {
	l.warnSeldom(&l.overtaken, "A stream sends nothing: other streams no longer wait for it",
		zap.String("stream", of), zap.Duration("max_delay", maxDelay))
}

func (l *lines) warnNoRoom(of string, most int) {
	l.warnSeldom(&l.noRoom, "The next packet of a stream has no room: other streams no longer wait for it. Raise limits.max_waiting_bytes to twice the size of one packet of each stream",
		zap.String("stream", of), zap.Int("max_waiting_bytes", most))
}

// warnOtherRecording warns about a trace or a stream with the position of another recording.
func (l *lines) warnOtherRecording(of zap.Field) {
	l.warnSeldom(&l.other, "Another recording has replaced the one that was read: it is read from its beginning", of)
}

func (l *lines) logLastEvents(err error) {
	l.logger.Error("The last events of a trace cannot be read", zap.Error(err))
}
