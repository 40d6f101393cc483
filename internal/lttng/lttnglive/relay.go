// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// RelayOptions are how a Relay speaks. The zero value is the defaults.
type RelayOptions struct {
	// Minor is the minor version to announce, from MinMinor to MaxMinor; default
	// MaxMinor. Below 15 sessions of CTF 2 are not told, as viewers that agree on less.
	Minor uint32
	// Timeout is how long the rest of a request may take to come when its first byte
	// has, and each 64 KiB of a reply to be taken; default 10 s.
	Timeout time.Duration
	// Clock tells the time since any moment, and never goes back; it is called by
	// several goroutines. A recording's time runs with it from the moment its first
	// viewer attaches. nil: all of a recording has come as soon as that viewer is
	// attached.
	Clock func() time.Duration
	// Again has each recording begin anew for every viewer that attaches it. Otherwise
	// its time runs on between viewers, as that of a real session does, and it is gone
	// after its end.
	Again bool
}

// Relay is the side of the relay daemon: it serves recordings to viewers, as a relay
// daemon of version 2.13 does.
type Relay struct {
	options RelayOptions

	sessions []*relaySession

	mu      sync.Mutex // guards what follows, and what changes in sessions
	viewers uint64     // IDs of viewer sessions that were given
}

// relaySession is a recording and where its time stands. The Relay's lock guards it;
// what a viewer has read of it belongs to the viewer's connection.
type relaySession struct {
	recording *Recording
	begun     bool
	begin     time.Duration // of the clock
	attached  bool          // to a viewer
}

// NewRelay makes a Relay of recordings, which must not change from now on. It fails
// when a recording is not in order of time, has a text or number that cannot be sent,
// or when two have a session or stream with the same ID.
func NewRelay(recordings []*Recording, options RelayOptions) (*Relay, error) {
	if options.Minor == 0 {
		options.Minor = MaxMinor
	}
	if options.Minor < MinMinor || options.Minor > MaxMinor {
		return nil, fmt.Errorf("expected a minor version from %d to %d to announce, got %d", MinMinor, MaxMinor, options.Minor)
	}
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	r := &Relay{options: options}
	sessions, streams := map[uint64]bool{}, map[uint64]bool{}
	for _, recording := range recordings {
		id := recording.Session.ID
		if err := recording.check(); err != nil {
			return nil, fmt.Errorf("session %d: %w", id, err)
		}
		if sessions[id] {
			return nil, fmt.Errorf("expected one session %d, got a second", id)
		}
		sessions[id] = true
		for _, s := range recording.Streams {
			if streams[s.ID] {
				return nil, fmt.Errorf("session %d: expected one stream %d, got a second", id, s.ID)
			}
			streams[s.ID] = true
		}
		r.sessions = append(r.sessions, &relaySession{recording: recording})
	}
	return r, nil
}

// eternity is the time of a recording all of which has come: just before Never.
const eternity time.Duration = math.MaxInt64 - 1

// now is the time of a recording.
func (r *Relay) now(s *relaySession) time.Duration {
	switch {
	case !s.begun:
		return 0
	case r.options.Clock == nil:
		return eternity
	default:
		return r.options.Clock() - s.begin
	}
}

// list gives the sessions that are not closed and that a viewer of the minor version
// may be told.
func (r *Relay) list(minor uint32) []Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sessions []Session
	for _, s := range r.sessions {
		if r.told(s, minor) {
			sessions = append(sessions, r.describe(s))
		}
	}
	return sessions
}

func (r *Relay) told(s *relaySession, minor uint32) bool {
	if minor < minorTraceFormats && s.recording.Session.Format != TraceFormatCTF1 {
		return false
	}
	return r.options.Again || r.now(s) < s.recording.End
}

func (r *Relay) describe(s *relaySession) Session {
	session := s.recording.Session
	now := r.now(s)
	session.Clients, session.Streams = 0, 0
	if s.attached {
		session.Clients = 1
	}
	for i := range s.recording.Streams {
		if s.recording.Streams[i].At <= now {
			session.Streams++
		}
	}
	return session
}

// attach gives a session to a viewer of the minor version. The first one's time is 0.
func (r *Relay) attach(id uint64, minor uint32) (*relaySession, time.Duration, AttachStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		switch {
		case s.recording.Session.ID != id || !r.told(s, minor):
			continue
		case s.recording.Session.LiveTimer == 0:
			return nil, 0, AttachNotLive
		case s.attached:
			return nil, 0, AttachAlready
		}
		s.begun = s.begun && !r.options.Again
		now := r.now(s)
		if !s.begun {
			s.begun = true
			if r.options.Clock != nil {
				s.begin = r.options.Clock()
			}
		}
		s.attached = true
		return s, now, AttachOK
	}
	return nil, 0, AttachUnknown
}

func (r *Relay) detach(s *relaySession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.attached = false
}

// time is now with the lock.
func (r *Relay) time(s *relaySession) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now(s)
}

// has says that the session is there, told or not.
func (r *Relay) has(id uint64) bool {
	return slices.ContainsFunc(r.sessions, func(s *relaySession) bool { return s.recording.Session.ID == id })
}

func (r *Relay) newViewer() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.viewers++
	return r.viewers
}
