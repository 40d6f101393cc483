// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"sync"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// switches are what can be switched on in a server.
type switches struct{ tracing, profiling bool }

// switched remembers what the receiver may have switched on in a server, which is to be
// switched off at the end: nothing of it is left in another life of the server, where it
// may be on because somebody else wants it. It is for several goroutines.
type switched struct {
	mu sync.Mutex
	// before is what was switched on before the present connection was made, and now what
	// since then.
	before, now switches
}

// note is told of an order that the server may obey.
func (s *switched) note(command rbkit.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch command {
	case rbkit.StartMemoryProfile:
		s.now.tracing = true
	case rbkit.StartCPUProfiling:
		s.now.profiling = true
	}
}

// seen is told of the state of the server: whoever switches on what is off, it was not us.
func (s *switched) seen(h rbkit.HandshakeReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.ObjectTraceEnabled {
		s.before.tracing, s.now.tracing = false, false
	}
	if !h.CPUProfiling {
		s.before.profiling, s.now.profiling = false, false
	}
}

// connected is told that there is a connection, and whether to another life of the server.
func (s *switched) connected(other bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other {
		s.before, s.now = switches{}, switches{}
		return
	}
	s.before = switches{tracing: s.before.tracing || s.now.tracing, profiling: s.before.profiling || s.now.profiling}
	s.now = switches{}
}

// connectedToOther is told that the present connection has been to another life of the
// server from its begin on.
func (s *switched) connectedToOther() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = switches{}
}

// on is what may be on because of us.
func (s *switched) on() switches {
	s.connected(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.before
}

// wanted is what is to be on in a server: what the configuration says, until somebody who
// steers it says otherwise. It is for several goroutines.
type wanted struct {
	mu       sync.Mutex
	switches switches
	clock    Clock
}

func newWanted(config *Config) wanted {
	return wanted{switches: switches{tracing: config.MemoryProfile, profiling: config.CPUProfile}, clock: config.Clock}
}

// now is what is wanted now.
func (w *wanted) now() (switches, Clock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.switches, w.clock
}

// say is told that somebody has the server told a command. It gives what takes that back,
// if nothing comes of it.
func (w *wanted) say(command rbkit.Command) (takeBack func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switches, clock := w.switches, w.clock
	takeBack = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.switches, w.clock = switches, clock
	}
	switch command {
	case rbkit.StartMemoryProfile:
		w.switches.tracing = true
	case rbkit.StopMemoryProfile:
		w.switches.tracing = false
	case rbkit.StartCPUProfiling:
		w.switches.profiling = true
	case rbkit.StopCPUProfiling:
		w.switches.profiling = false
	case rbkit.UseWallTime:
		w.clock = ClockWall
	case rbkit.UseCPUTime:
		w.clock = ClockCPU
	}
	return takeBack
}
