// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// Session is a session that records functions of C programs and records of
// java.util.logging, each with process, thread and name of the thread.
type Session struct {
	Name string
	// Live is the interval at which buffers are flushed. The default is 100 ms.
	Live time.Duration
	// PerProcess creates buffers for each process, instead of for each user.
	PerProcess bool
	// Buffer is the size of a buffer in bytes, a power of 2 of at least 4096. Each CPU has two of them for each
	// channel. The tracer discards events that do not fit. The default is eight of 1 MiB: they have room for more than
	// the programs of tests fill before a buffer is read. At each Live interval the tracer begins another buffer, so a
	// busy machine needs many.
	Buffer int
	// AnyAgentRecords records everything from agents, for loggers enabled by any daemon, and enables none. Otherwise
	// all loggers of Java are enabled.
	AnyAgentRecords bool
	// Files is the maximum number of the relay daemon's files for each stream, each of the size of a buffer. Beyond
	// it the oldest file is overwritten. 0 means one file with all data.
	Files int
	// Events are the recorded events of user space, separated by commas. The default is all of LTTng's own events.
	Events string

	// Output is the directory into which the session daemon writes. Empty: it sends the data to the relay daemon.
	Output string

	daemons *Daemons
}

// The channels of a session. The second one is the name of LTTng's channel for records of java.util.logging.
var channels = []string{"calls", "lttng_jul_channel"}

// Create creates a session, and starts it.
func (d *Daemons) Create(t testing.TB, s Session) *Session {
	t.Helper()
	s.daemons = d
	if s.Live == 0 {
		s.Live = 100 * time.Millisecond
	}
	if s.Output != "" {
		d.lttng(t, "create", s.Name, "--output="+s.Output)
	} else {
		d.lttng(t, "create", s.Name, "--live="+strconv.FormatInt(s.Live.Microseconds(), 10),
			"--ctrl-url=tcp://"+d.Relay.control, "--data-url=tcp://"+d.Relay.data)
	}
	number := 2
	if s.Buffer == 0 {
		s.Buffer, number = 1<<20, 8
	}
	buffers := "--buffers-uid"
	if s.PerProcess {
		buffers = "--buffers-pid"
	}
	files := "--tracefile-size=0"
	if s.Files > 0 {
		files = "--tracefile-size=" + strconv.Itoa(s.Buffer)
	}
	for _, channel := range channels {
		d.lttng(t, "enable-channel", "--userspace", "--session="+s.Name, buffers, "--num-subbuf="+strconv.Itoa(number), "--subbuf-size="+strconv.Itoa(s.Buffer),
			files, "--tracefile-count="+strconv.Itoa(s.Files), channel)
	}
	d.lttng(t, "add-context", "--userspace", "--session="+s.Name, "--type=vpid", "--type=vtid", "--type=procname")
	if s.Events == "" {
		// Without the program's own events, because records of Java would be recorded twice.
		s.Events = "lttng_ust_*"
	}
	d.lttng(t, "enable-event", "--userspace", "--session="+s.Name, "--channel="+channels[0], s.Events)
	if s.AnyAgentRecords {
		// "lttng_jul:*" is not allowed, because LTTng makes such rules itself.
		d.lttng(t, "enable-event", "--userspace", "--session="+s.Name, "--channel="+channels[0], "lttng_ju*,lttng_log4*,lttng_pytho*")
	} else {
		d.lttng(t, "enable-event", "--jul", "--session="+s.Name, "--all")
	}
	s.Start(t)
	return &s
}

// Start starts tracing, also once more.
func (s *Session) Start(t testing.TB) {
	t.Helper()
	s.daemons.lttng(t, "start", s.Name)
}

// Stop stops tracing, and waits until all that was recorded is with the relay daemon.
func (s *Session) Stop(t testing.TB) {
	t.Helper()
	s.daemons.lttng(t, "stop", s.Name)
}

// Rotate ends the current chunk of a session with an Output, and begins the next one.
func (s *Session) Rotate(t testing.TB) {
	t.Helper()
	s.daemons.lttng(t, "rotate", s.Name)
}

// Clear removes the recorded data, also from the relay daemon.
func (s *Session) Clear(t testing.TB) {
	t.Helper()
	s.daemons.lttng(t, "clear", s.Name)
}

// Destroy ends the session, and waits until the relay daemon has all its data. LTTng 2.13 waits without end if a
// session that was created later continues.
func (s *Session) Destroy(t testing.TB) {
	t.Helper()
	s.daemons.lttng(t, "destroy", s.Name)
}

// Abandon ends a session without a relay daemon. LTTng reports an error, but ends the session.
func (s *Session) Abandon(t testing.TB) {
	t.Helper()
	said, _ := s.daemons.try("destroy", s.Name)
	if listed := s.daemons.lttng(t, "list"); strings.Contains(listed, s.Name) {
		t.Fatalf("expected no session %s after its destruction with the output\n%s\ngot:\n%s", s.Name, said, listed)
	}
}
