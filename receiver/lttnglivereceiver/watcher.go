// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"net"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

// watcher lists the sessions of the relay daemon, on a connection of its own, and has
// a follower for each that is to be read.
type watcher struct {
	env      *environment
	patterns patterns
	group    sync.WaitGroup
	backoff  *backoff.Backoff
	// health is the relay daemon's part of the component's.
	health *serverhealth.Part
	// failing is that the relay daemon can't be reached.
	failing logline.Burst
	// warned are sessions that can't be read, which is logged once for each.
	warned map[sessionKey]bool

	conn   net.Conn
	viewer *lttnglive.Viewer
	// rounds counts the lists that came.
	rounds atomic.Int64

	mu        sync.Mutex
	followers map[sessionKey]*follower
}

// sessionKey is a session of a relay daemon.
type sessionKey struct {
	id         uint64
	host, name string
}

func newWatcher(env *environment) *watcher {
	return &watcher{
		env: env, health: env.health.Server(env.config.Endpoint), patterns: compilePatterns(env.config.Sessions), backoff: backoff.New(env.config.Reconnect),
		warned: map[sessionKey]bool{}, followers: map[sessionKey]*follower{},
	}
}

func (w *watcher) start() {
	w.group.Add(1)
	go w.run()
}

// wait waits for the end of the watcher and of all followers.
func (w *watcher) wait() { w.group.Wait() }

func (w *watcher) run() {
	defer w.group.Done()
	defer w.disconnect()
	for !w.env.isStopping() {
		pause := w.env.config.Poll.ListInterval
		sessions, err := w.list()
		if err == nil {
			w.backoff.Reset()
			w.health.Up()
			if w.failing.Over() {
				w.env.logger.Info("The relay daemon can be reached again", zap.String("endpoint", w.env.config.Endpoint))
			}
			w.follow(sessions)
			w.env.fit()
			w.rounds.Add(1)
		} else if !w.env.isStopping() {
			w.failed(err)
			pause = w.backoff.Pause()
		}
		if !w.env.pause(pause) {
			return
		}
	}
}

// list asks for the sessions, on a new connection if there is none.
func (w *watcher) list() ([]lttnglive.Session, error) {
	if w.conn == nil {
		conn, viewer, err := w.env.connect(w.env.reading, nil)
		if err != nil {
			return nil, err
		}
		w.conn, w.viewer = conn, viewer
	}
	sessions, err := w.viewer.Sessions(w.env.reading)
	if err != nil {
		w.disconnect()
	}
	return sessions, err
}

// disconnect closes the connection. A relay daemon that was started again counts IDs from
// 1 again, so on the next one a key may be that of another session.
func (w *watcher) disconnect() {
	if w.conn == nil {
		return
	}
	_ = w.conn.Close()
	w.conn, w.viewer = nil, nil
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.followers {
		f.outlived = true
	}
}

func (w *watcher) failed(err error) {
	w.env.telemetry.connectionFailed()
	w.health.Failed(err)
	if since, say := w.failing.Say(w.env.now()); say {
		w.env.logger.Warn("The sessions of the relay daemon cannot be listed: it is tried again",
			zap.String("endpoint", w.env.config.Endpoint), zap.Error(err), zap.Int("since_last", since))
	}
}

// follow starts a follower for each session that is to be read and has none.
func (w *watcher) follow(sessions []lttnglive.Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	listed := make(map[sessionKey]bool, len(sessions))
	reading := len(w.living())
	for _, s := range sessions {
		key := sessionKey{s.ID, s.Host, s.Name}
		listed[key] = true
		if f := w.followers[key]; f != nil && !f.isReplaceable() || !w.patterns.match(sessionName(s)) {
			continue
		}
		if w.isReadable(key, s, reading) {
			w.begin(key, s)
			reading++
		}
	}
	w.forget(listed)
}

// isReadable reports whether a session can be read now, with so many that are; if not, it
// says why, once for each session.
func (w *watcher) isReadable(key sessionKey, s lttnglive.Session, reading int) bool {
	line, reason := &w.env.lines.notLive, "it was not created with a live timer: lttng create --live"
	if s.LiveTimer != 0 {
		if reading < w.env.config.Limits.MaxSessions {
			return true
		}
		line, reason = &w.env.lines.tooMany, "limits.max_sessions is reached"
	}
	if !w.warned[key] {
		w.warned[key] = true
		w.env.said(line, w.env.logger, zap.WarnLevel, "A session is not read: "+reason, zap.String("session", sessionName(s)))
	}
	return false
}

// begin begins to read a session.
func (w *watcher) begin(key sessionKey, s lttnglive.Session) {
	f := newFollower(w.env, s)
	w.followers[key] = f
	w.group.Add(1)
	go func() {
		defer w.group.Done()
		f.run()
	}()
}

// forget gives up what was known of sessions that are no longer listed.
func (w *watcher) forget(listed map[sessionKey]bool) {
	for key, f := range w.followers {
		if !listed[key] && f.isDone() {
			delete(w.followers, key)
		}
	}
	for key := range w.warned {
		if !listed[key] {
			delete(w.warned, key)
		}
	}
}

// isDone reports whether the follower has ended.
func (f *follower) isDone() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// isReplaceable reports whether a session that is listed under the follower's key is to
// be read by a new one: this one has ended, and its session was not closed, or the
// listed one may be another. What was read of it is not read twice: that is known by
// trace.
func (f *follower) isReplaceable() bool { return f.isDone() && (!f.over || f.outlived) }

// active are the followers that have not ended.
func (w *watcher) active() []*follower {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.living()
}

// living is active for those who hold mu.
func (w *watcher) living() []*follower {
	living := make([]*follower, 0, len(w.followers))
	for _, f := range w.followers {
		if !f.isDone() {
			living = append(living, f)
		}
	}
	return living
}
