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
	// Live is how often buffers are flushed; default 100 ms.
	Live time.Duration
	// PerProcess gives each process buffers of its own, instead of each user.
	PerProcess bool
	// Buffer is the size of a buffer in bytes, a power of 2 from 4096 on, of which each
	// CPU has two for each channel. Programs lose what doesn't fit; default 2 MiB, which
	// is more than the programs of tests fill before it is read.
	Buffer int
	// AnyAgentRecords records what agents send to the tracer, whoever has switched their
	// loggers, and switches none. Otherwise all loggers of Java are switched on.
	AnyAgentRecords bool
	// Files is how many files the relay daemon keeps of each stream, each of the size
	// of a buffer; 0: one with all. Beyond it the oldest is written anew.
	Files int
	// Events are those of user space that are recorded, with commas between; default all
	// of LTTng's own.
	Events string

	daemons *Daemons
}

// The channels of a session. Records of java.util.logging go to one of this name.
var channels = []string{"calls", "lttng_jul_channel"}

// Create creates a session, and starts it.
func (d *Daemons) Create(t testing.TB, s Session) *Session {
	t.Helper()
	s.daemons = d
	if s.Live == 0 {
		s.Live = 100 * time.Millisecond
	}
	d.lttng(t, "create", s.Name, "--live="+strconv.FormatInt(s.Live.Microseconds(), 10),
		"--ctrl-url=tcp://"+d.Relay.control, "--data-url=tcp://"+d.Relay.data)
	if s.Buffer == 0 {
		s.Buffer = 2 << 20
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
		d.lttng(t, "enable-channel", "--userspace", "--session="+s.Name, buffers, "--num-subbuf=2", "--subbuf-size="+strconv.Itoa(s.Buffer),
			files, "--tracefile-count="+strconv.Itoa(s.Files), channel)
	}
	d.lttng(t, "add-context", "--userspace", "--session="+s.Name, "--type=vpid", "--type=vtid", "--type=procname")
	if s.Events == "" {
		// Without its own events: records of Java would come twice.
		s.Events = "lttng_ust_*"
	}
	d.lttng(t, "enable-event", "--userspace", "--session="+s.Name, "--channel="+channels[0], s.Events)
	if s.AnyAgentRecords {
		// "lttng_jul:*" is not allowed, since LTTng makes such rules itself.
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

// Clear removes what was recorded, also what is with the relay daemon.
func (s *Session) Clear(t testing.TB) {
	t.Helper()
	s.daemons.lttng(t, "clear", s.Name)
}

// Destroy ends the session, and waits until all that was recorded is with the relay
// daemon. LTTng 2.13 waits for ever where a session that was created later goes on.
func (s *Session) Destroy(t testing.TB) {
	t.Helper()
	s.daemons.lttng(t, "destroy", s.Name)
}

// Abandon ends a session whose relay daemon is gone. LTTng says that it failed and does
// it all the same.
func (s *Session) Abandon(t testing.TB) {
	t.Helper()
	said, _ := s.daemons.try("destroy", s.Name)
	if listed := s.daemons.lttng(t, "list"); strings.Contains(listed, s.Name) {
		t.Fatalf("expected no session %s after its destruction, which said\n%s\ngot:\n%s", s.Name, said, listed)
	}
}
