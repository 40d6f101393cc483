// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// sessionBlock reads the table of the client's own session:
//
//	+------------+------------------+
//	|   JAVA_PID | 16081            |
//	+------------+------------------+
type sessionBlock struct {
	*output
	definite
	pairs
	sessions javamethods.Sessions
	session  javamethods.Session
	has      struct{ process, session bool }
}

func (b *sessionBlock) line(text []byte) error { return b.pairs.line(text, b) }

// pair reads a row.
func (b *sessionBlock) pair(key []byte, value *cell) error {
	text := value.joined(func([]byte) bool { return true })
	ok := true
	switch string(key) {
	case "JAVA_PID":
		b.has.process = true
		b.sessions.ProcessID, ok = count(text)
	case "SESSION_ID":
		b.has.session = true
		b.session.ID, ok = count(text)
	case "DURATION":
		var ms int64
		ms, ok = count(text)
		ok = ok && ms <= maxMilliseconds
		b.session.Duration = time.Duration(ms) * time.Millisecond
	case "CHARSET":
		b.session.Charset = b.names.Intern(text)
	case "FROM":
		b.session.From = b.names.Intern(text)
	case "TO":
		b.session.To = b.names.Intern(text)
	}
	if !ok {
		return unexpected("a number as the session's "+string(key), text)
	}
	return nil
}

func (b *sessionBlock) end() error {
	if err := b.finish(); err != nil {
		return err
	}
	if !b.has.process || !b.has.session {
		return unexpected("a table with the session's JAVA_PID and SESSION_ID", nil)
	}
	b.sessions.Sessions = []javamethods.Session{b.session}
	b.reply(&b.sessions)
	return nil
}

// AppendSession adds the table of the client's own session, the first one of s. Silent is its mode at the time of the
// command.
func AppendSession(b []byte, s *javamethods.Sessions, silent bool) []byte {
	session := s.Sessions[0]
	return appendTable(b, tableStyle{columns: []column{{right: true}, {}}, padding: 1, bottom: true}, [][]string{
		{"JAVA_PID", strconv.FormatInt(s.ProcessID, 10)},
		{"SESSION_ID", strconv.FormatInt(session.ID, 10)},
		{"DURATION", strconv.FormatInt(session.Duration.Milliseconds(), 10)},
		{"SILENT", strconv.FormatBool(silent)},
		{"CHARSET", session.Charset},
		{"PROMPT", DefaultPrompt},
		{"FROM", session.From},
		{"TO", session.To},
	})
}
