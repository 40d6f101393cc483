// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

// watcher lists the sessions of the relay daemon, on a connection of its own, and reads those that
// match the setting sessions.
type watcher struct {
	env      *session.Environment
	config   *Config
	patterns patterns
	// startGoroutine starts a goroutine that the shutdown waits for.
	startGoroutine func(func())
	backoff        *backoff.Backoff
	// health is the relay daemon's part of the component's status.
	health *serverhealth.Part
	// failing is logged while the relay daemon cannot be reached; notLive and tooMany for sessions that
	// cannot be read.
	failing          logline.Burst
	notLive, tooMany logline.Seldom
	// settled are the patterns that matched a session, or of which a log line says that they match none.
	settled   []bool
	unmatched logline.Seldom
	// warned are sessions that cannot be read. Each is logged once, until a list lacks it.
	warned map[sessionKey]bool

	conn   net.Conn
	viewer *lttnglive.Viewer
	// rounds is the number of lists.
	rounds atomic.Int64

	mu       sync.Mutex
	sessions map[sessionKey]*watchedSession
}

// sessionKey identifies a session of a relay daemon.
type sessionKey struct {
	id         uint64
	host, name string
}

// runningSession is a session that is read, or has ended.
type runningSession interface {
	// State returns the session's state for metrics.
	State() session.State
	IsDone() bool
	// WasClosed reports whether the session was closed in LTTng. Call it after its end.
	WasClosed() bool
}

// watchedSession is a listed session.
type watchedSession struct {
	runningSession
	// stale is set if the connection of the list with the session was lost.
	stale bool
}

// isReplaceable reports whether a new session may have the key of this one. This one has ended. It was lost rather than
// closed, or the relay daemon may have used its key again. Positions are stored by trace, so no event is read twice.
func (s *watchedSession) isReplaceable() bool { return s.IsDone() && (!s.WasClosed() || s.stale) }

func newWatcher(env *session.Environment, config *Config, startGoroutine func(func())) *watcher {
	return &watcher{
		env: env, config: config, health: env.Health.Server(config.Endpoint), patterns: compilePatterns(config.Sessions), startGoroutine: startGoroutine,
		settled: make([]bool, len(config.Sessions)), unmatched: logline.Seldom{Most: mostPatternLines},
		backoff: backoff.New(config.Reconnect), warned: map[sessionKey]bool{}, sessions: map[sessionKey]*watchedSession{},
	}
}

// run lists the sessions until the shutdown begins.
func (w *watcher) run() {
	defer w.disconnect()
	for !w.env.IsStopping() {
		pause := w.config.Poll.ListInterval
		sessions, err := w.list()
		if err == nil {
			w.backoff.Reset()
			w.health.Up()
			if w.failing.Over() {
				w.env.Logger.Info("The relay daemon can be reached again", zap.String("endpoint", w.config.Endpoint))
			}
			w.readListed(sessions)
			w.env.Shrink()
			w.rounds.Add(1)
		} else if !w.env.IsStopping() {
			w.logFailure(err)
			pause = w.backoff.Pause()
		}
		if !w.env.Pause(pause) {
			return
		}
	}
}

// list requests the sessions, on a new connection if there is none.
func (w *watcher) list() ([]lttnglive.Session, error) {
	if w.conn == nil {
		conn, viewer, err := w.env.Connect(w.env.Leaving, nil)
		if err != nil {
			return nil, err
		}
		w.conn, w.viewer = conn, viewer
	}
	sessions, err := w.viewer.Sessions(w.env.Leaving)
	if err != nil {
		w.disconnect()
	}
	return sessions, err
}

// disconnect closes the connection. A relay daemon that was started again counts IDs from 1 again, so on
// the next connection a key may belong to another session.
func (w *watcher) disconnect() {
	if w.conn == nil {
		return
	}
	_ = w.conn.Close()
	w.conn, w.viewer = nil, nil
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sessions {
		s.stale = true
	}
}

func (w *watcher) logFailure(err error) {
	w.env.Telemetry.ConnectionFailed()
	w.health.Failed(err)
	if since, due := w.failing.Count(w.env.Now()); due {
		w.env.Logger.Warn("The sessions of the relay daemon cannot be listed: the receiver tries again",
			zap.String("endpoint", w.config.Endpoint), zap.Error(err), zap.Int("times_since_last_line", since))
	}
}

// readListed begins to read each listed session that matches, unless it is read already.
func (w *watcher) readListed(listed []lttnglive.Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logUnmatched(listed)
	keys := make(map[sessionKey]bool, len(listed))
	reading := len(w.living())
	for _, s := range listed {
		key := sessionKey{s.ID, s.Host, s.Name}
		keys[key] = true
		if watched := w.sessions[key]; watched != nil && !watched.isReplaceable() || !w.patterns.match(session.Name(s)) {
			continue
		}
		if w.isReadable(key, s, reading) {
			w.read(key, s)
			reading++
		}
	}
	w.forgetUnlisted(keys)
}

// mostPatternLines is the maximum number of lines about patterns in a pause.
const mostPatternLines = 20

// logUnmatched logs patterns that match none of the listed sessions, once for each pattern.
func (w *watcher) logUnmatched(listed []lttnglive.Session) {
	const mostNames = 10
	if len(listed) == 0 {
		return
	}
	var names []string
	for _, s := range listed[:min(len(listed), mostNames)] {
		names = append(names, session.Name(s))
	}
	for i := range w.patterns {
		if w.settled[i] {
			continue
		}
		w.settled[i] = true
		if !slices.ContainsFunc(listed, func(s lttnglive.Session) bool { return w.patterns[i : i+1].match(session.Name(s)) }) {
			w.env.LogSeldom(&w.unmatched, w.env.Logger, zap.InfoLevel, "No session matches a pattern of the setting sessions yet: patterns are for host/name",
				zap.String("pattern", w.config.Sessions[i]), zap.Int("listed", len(listed)), zap.Strings("names", names))
		}
	}
}

// isReadable reports whether a session can be read in addition to reading others. If not, it logs the reason, once
// for each session.
func (w *watcher) isReadable(key sessionKey, s lttnglive.Session, reading int) bool {
	line, reason := &w.notLive, "it was not created with a live timer: lttng create --live"
	if s.LiveTimer != 0 {
		if reading < w.config.Limits.MaxSessions {
			return true
		}
		line, reason = &w.tooMany, "limits.max_sessions is reached"
	}
	if !w.warned[key] {
		w.warned[key] = true
		w.env.LogSeldom(line, w.env.Logger, zap.WarnLevel, "A session is not read: "+reason, zap.String("session", session.Name(s)))
	}
	return false
}

// read begins to read a session.
func (w *watcher) read(key sessionKey, listed lttnglive.Session) {
	s := session.New(w.env, listed)
	w.sessions[key] = &watchedSession{runningSession: s}
	w.startGoroutine(s.Run)
}

// forgetUnlisted forgets ended sessions that are no longer listed.
func (w *watcher) forgetUnlisted(listed map[sessionKey]bool) {
	for key, s := range w.sessions {
		if !listed[key] && s.IsDone() {
			delete(w.sessions, key)
		}
	}
	for key := range w.warned {
		if !listed[key] {
			delete(w.warned, key)
		}
	}
}

// states returns the states of the sessions that have not ended.
func (w *watcher) states() []session.State {
	var states []session.State
	for _, s := range w.active() {
		states = append(states, s.State())
	}
	return states
}

// active returns the sessions that have not ended.
func (w *watcher) active() []*watchedSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.living()
}

// living is active for callers that hold mu.
func (w *watcher) living() []*watchedSession {
	living := make([]*watchedSession, 0, len(w.sessions))
	for _, s := range w.sessions {
		if !s.IsDone() {
			living = append(living, s)
		}
	}
	return living
}
