// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import "time"

// Config is how a server is spoken with. A field that is 0 has its default.
type Config struct {
	// Zone is the time zone of the server's process, in which it says times; default UTC.
	Zone *time.Location
	// MaxReplyBytes is how long one answer may be: a table with all its rows, a tree;
	// default 16 MiB. MaxLineBytes is how long a line may be; default 1 MiB.
	MaxReplyBytes, MaxLineBytes int
	// QuietTime is how long nothing may come after a byte 0x04 that can be part of a text for
	// it to be the end of what the server says, and after a row of a table that may go on in
	// the next line for it to be complete; default 500 ms.
	QuietTime time.Duration
	// SettleTime is how long is waited after the first command of a connection before the
	// second one is sent. The server says that a command has ended a moment before it has: a
	// command that it is sent in between is ended with the first one; default 100 ms.
	SettleTime time.Duration
	// ConnectTimeout is how long connecting may take; default 10 s.
	ConnectTimeout time.Duration
	// WriteTimeout is how long sending a command may take; default 10 s.
	WriteTimeout time.Duration
	// AnswerTimeout is how long the server may take for what has to come: what the patterns
	// of a command match, the rest of an answer, the next or the end, and, beyond a cycle, the
	// next table of a [greys.MonitorCommand]; default 30 s. A command that waits for calls
	// may be silent for ever: whether the connection is alive is TCP's matter (keep-alive).
	AnswerTimeout time.Duration
	// ListTimeout is how long a command may take that says what there is and ends, such as
	// a [greys.MethodsCommand], of which nothing comes before the server has all; default
	// 5 min.
	ListTimeout time.Duration
	// AbortTimeout is how long is waited for the end of a command that was aborted;
	// default 5 s.
	AbortTimeout time.Duration
}

const (
	defaultMaxReplyBytes  = 16 << 20
	defaultMaxLineBytes   = 1 << 20
	defaultQuietTime      = 500 * time.Millisecond
	defaultSettleTime     = 100 * time.Millisecond
	defaultConnectTimeout = 10 * time.Second
	defaultWriteTimeout   = 10 * time.Second
	defaultAnswerTimeout  = 30 * time.Second
	defaultListTimeout    = 5 * time.Minute
	defaultAbortTimeout   = 5 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	if c.MaxReplyBytes <= 0 {
		c.MaxReplyBytes = defaultMaxReplyBytes
	}
	if c.MaxLineBytes <= 0 {
		c.MaxLineBytes = defaultMaxLineBytes
	}
	for _, d := range []struct {
		of       *time.Duration
		standard time.Duration
	}{
		{&c.QuietTime, defaultQuietTime},
		{&c.SettleTime, defaultSettleTime},
		{&c.ConnectTimeout, defaultConnectTimeout},
		{&c.WriteTimeout, defaultWriteTimeout},
		{&c.AnswerTimeout, defaultAnswerTimeout},
		{&c.ListTimeout, defaultListTimeout},
		{&c.AbortTimeout, defaultAbortTimeout},
	} {
		if *d.of <= 0 {
			*d.of = d.standard
		}
	}
	return c
}
