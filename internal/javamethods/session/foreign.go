// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"time"
)

// A reset by another client removes our instrumentation from all classes. The console does not report that: our
// commands stay open without replies. Session numbers show connections of other clients, because the server numbers all
// connections consecutively. If all commands that had replies before become silent after that, the receiver sends them
// again.

var errForeignReset = errors.New("another client may have reset the server's classes")

// foreignSessions detects sessions of other clients.
type foreignSessions struct {
	known bool
	// others is the highest possible number of sessions of others so far.
	others int64
	// since is the time when a session of another client was noticed; zero means none.
	since time.Time
}

// compare compares the number of our session with the counts of our connections: at least `least` and at most `most` of
// them have lower numbers, because other commands connect meanwhile. It returns the least possible number of new
// sessions of others.
func (f *foreignSessions) compare(session, least, most int64) (others int64) {
	if f.known {
		others = max(0, session-most-f.others)
	}
	if highest := session - least - 1; !f.known || others > 0 || highest < f.others {
		f.others = highest
	}
	f.known = true
	return others
}

// suspect starts to watch for silent commands.
func (f *foreignSessions) suspect(now time.Time) {
	if f.since.IsZero() {
		f.since = now
	}
}

// endSuspicion ends the suspicion if commands report calls, or have been silent for long enough. It reports the latter.
func (f *foreignSessions) endSuspicion(now time.Time, reporting bool, enough time.Duration) (silenced bool) {
	silenced = !reporting && now.Sub(f.since) > enough
	if reporting || silenced {
		f.since = time.Time{}
	}
	return silenced
}
