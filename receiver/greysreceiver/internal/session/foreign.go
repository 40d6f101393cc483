// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"time"
)

// A reset of another client removes the code of our commands from all classes. The console does
// not report that: the commands go on without replies. The numbers of sessions show that another
// client has connected, since each connection has the next one. If commands that had replies before
// have none afterwards, they are asked for again.

var errForeignReset = errors.New("another client may have reset the server's classes")

// foreignSessions finds sessions of other clients.
type foreignSessions struct {
	known bool
	// others is how many sessions were not ours until now, at most.
	others int64
	// since is when a session of another client was noticed; zero: none was.
	since time.Time
}

// compare compares the number of a session of ours with the number of our connections: least of
// them have lower numbers for sure, and most may have, since other commands connect meanwhile. It
// returns how many new sessions are of others, at least.
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

// suspect has the silence of commands watched from now on.
func (f *foreignSessions) suspect(now time.Time) {
	if f.since.IsZero() {
		f.since = now
	}
}

// endSuspicion ends the suspicion where commands report calls, or have been silent for long enough. It
// reports whether they have.
func (f *foreignSessions) endSuspicion(now time.Time, reporting bool, enough time.Duration) (silenced bool) {
	silenced = !reporting && now.Sub(f.since) > enough
	if reporting || silenced {
		f.since = time.Time{}
	}
	return silenced
}
