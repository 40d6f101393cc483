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

// RelayOptions configure a Relay. The zero value has the defaults.
type RelayOptions struct {
	// Minor is the minor version to announce, from MinMinor to MaxMinor. The default is MaxMinor. If the agreed
	// version is below 15, sessions of CTF 2 are not listed.
	Minor uint32
	// Timeout is the time limit for the rest of a request after its first byte, and for each 64 KiB of a reply. The
	// default is 10 s.
	Timeout time.Duration
	// Clock returns the time since a fixed moment. It never decreases, and several goroutines call it. A recording's
	// time starts when its first viewer attaches. If Clock is nil, all data of a recording exists as soon as that
	// viewer has attached.
	Clock func() time.Duration
	// Restart starts each recording again for every viewer that attaches it. Otherwise its time continues between
	// viewers, like that of a real session, and the recording disappears after its end.
	Restart bool
}

// Relay is the relay daemon's side: it serves recordings to viewers like a relay daemon of version 2.13.
type Relay struct {
	options RelayOptions

	sessions []*relaySession

	mu      sync.Mutex // guards the following fields and the state of sessions
	viewers uint64     // number of viewer sessions so far, for their IDs
}

// relaySession is a recording and its time. The Relay's mutex guards it. The progress of a viewer belongs to the
// viewer's connection.
type relaySession struct {
	recording *Recording
	begun     bool
	begin     time.Duration // of the clock
	attached  bool          // to a viewer
}

// NewRelay returns a Relay of recordings, which must not change afterwards. It fails if a recording is not in order
// of time, has a text or number that cannot be sent, or if two sessions or streams have the same ID.
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

// eternity is the time of a recording after all of its data: just before Never.
const eternity time.Duration = math.MaxInt64 - 1

// now returns the time of a recording.
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

// list returns the open sessions that a viewer of the minor version may see.
func (r *Relay) list(minor uint32) []Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sessions []Session
	for _, s := range r.sessions {
		if r.isListed(s, minor) {
			sessions = append(sessions, r.describe(s))
		}
	}
	return sessions
}

// isListed reports whether a viewer of the minor version may see the session.
func (r *Relay) isListed(s *relaySession, minor uint32) bool {
	if minor < minorTraceFormats && s.recording.Session.Format != TraceFormatCTF1 {
		return false
	}
	return r.options.Restart || r.now(s) < s.recording.End
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

// attach attaches a session for a viewer of the minor version. The time of the first viewer is 0.
func (r *Relay) attach(id uint64, minor uint32) (*relaySession, time.Duration, AttachStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		switch {
		case s.recording.Session.ID != id || !r.isListed(s, minor):
			continue
		case s.recording.Session.LiveTimer == 0:
			return nil, 0, AttachNotLive
		case s.attached:
			return nil, 0, AttachAlready
		}
		s.begun = s.begun && !r.options.Restart
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

// time is now with the mutex held.
func (r *Relay) time(s *relaySession) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now(s)
}

// has reports whether the session exists, listed or not.
func (r *Relay) has(id uint64) bool {
	return slices.ContainsFunc(r.sessions, func(s *relaySession) bool { return s.recording.Session.ID == id })
}

func (r *Relay) newViewer() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.viewers++
	return r.viewers
}
