// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import "time"

// Config has the settings of a client. A field that is 0 has its default.
type Config struct {
	// Zone is the time zone in which the server's process writes times; default UTC.
	Zone *time.Location
	// MaxReplyBytes is the maximum length of one answer, such as a table with all rows, or a tree; default 16 MiB.
	// MaxLineBytes is the maximum length of a line; default 1 MiB.
	MaxReplyBytes, MaxLineBytes int
	// QuietTime is a time without new bytes. After it, a byte 0x04 that can be part of a text is the end of the answer,
	// and a table row that can continue in the next line is complete; default 500 ms.
	QuietTime time.Duration
	// SettleTime is the pause between the end of the first command of a connection and the second command. The server
	// reports the end of a command slightly too early. It ends a command that arrives in this gap together with the
	// first one; default 100 ms.
	SettleTime time.Duration
	// ConnectTimeout limits the time to connect; default 10 s.
	ConnectTimeout time.Duration
	// WriteTimeout limits the time to send a command; default 10 s.
	WriteTimeout time.Duration
	// AnswerTimeout limits the time for an expected answer: the counts of matched classes and methods, the rest of an
	// answer, the next answer or the end, and, after each cycle, the next table of a [javamethods.MonitorCommand];
	// default 30 s. A command that waits for calls has no limit. TCP keep-alive detects dead connections.
	AnswerTimeout time.Duration
	// ListTimeout limits the whole time of a command that ends by itself, such as a [javamethods.MethodsCommand]. The
	// server can be silent until it has the complete list; default 5 min.
	ListTimeout time.Duration
	// AbortTimeout limits the wait for the end of an aborted command; default 5 s.
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
