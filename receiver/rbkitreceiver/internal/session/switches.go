// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// switches are the profiles of a server.
type switches struct{ tracing, profiling bool }

// switchedOn remembers the profiles that the receiver may have switched on, and has to
// switch off at the end. It forgets them when the server restarts, because another client
// may switch them on then. It is for several goroutines.
type switchedOn struct {
	mu sync.Mutex
	// before are the profiles switched on before the current connection, and now those since.
	before, now switches
}

// noteCommand notes a command that the server may carry out.
func (s *switchedOn) noteCommand(command rbkit.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch command {
	case rbkit.StartMemoryProfile:
		s.now.tracing = true
	case rbkit.StartCPUProfiling:
		s.now.profiling = true
	}
}

// noteState notes the state of the server. If a profile that is off is on later, another client
// switched it on.
func (s *switchedOn) noteState(h rbkit.HandshakeReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.ObjectTraceEnabled {
		s.before.tracing, s.now.tracing = false, false
	}
	if !h.CPUProfiling {
		s.before.profiling, s.now.profiling = false, false
	}
}

// connected notes a new connection, and whether it is to another life of the server.
func (s *switchedOn) connected(other bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other {
		s.before, s.now = switches{}, switches{}
		return
	}
	s.before = switches{tracing: s.before.tracing || s.now.tracing, profiling: s.before.profiling || s.now.profiling}
	s.now = switches{}
}

// connectedToOther notes that the current connection has been to another life of the server since
// its begin.
func (s *switchedOn) connectedToOther() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = switches{}
}

// allProfiles returns the profiles that may be on because of the receiver.
func (s *switchedOn) allProfiles() switches {
	s.connected(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.before
}

// wanted is the state that a server has to have: the configured state, until a command of an
// extension changes it. It is for several goroutines.
type wanted struct {
	mu       sync.Mutex
	switches switches
	// clock is the command that sets the clock; empty: the clock stays.
	clock rbkit.Command
}

func newWanted(config *Settings) wanted {
	return wanted{switches: switches{tracing: config.MemoryProfile, profiling: config.CPUProfile}, clock: config.Clock}
}

// current returns the wanted state.
func (w *wanted) current() (switches, rbkit.Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.switches, w.clock
}

// applyCommand changes the wanted state by a command. takeBack restores the previous one.
func (w *wanted) applyCommand(command rbkit.Command) (takeBack func()) {
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
	case rbkit.UseWallTime, rbkit.UseCPUTime:
		w.clock = command
	}
	return takeBack
}
