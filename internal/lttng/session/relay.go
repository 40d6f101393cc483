// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"net"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Name returns the name of a relay daemon's session for settings and log lines: host/name.
func Name(s lttnglive.Session) string { return s.Host + "/" + s.Name }

// New returns a session that the relay daemon listed.
func New(env *Environment, s lttnglive.Session) *Session {
	relay := &relay{env: env, session: s}
	return NewOf(env, Subject{
		Session: s, Kind: "session", Name: Name(s), Words: &relayWords, Attach: relay.attach,
	})
}

// relayWords are the log lines of sessions of relay daemons.
var relayWords = Words{
	Attached:     "The session is attached",
	Again:        "The session is attached again",
	Closed:       "The session was closed",
	Gone:         "The session is gone from the relay daemon",
	Unreadable:   "The session is dropped for now: its data cannot be read",
	Refused:      "The session cannot be attached: the receiver tries again",
	Disconnected: "The connection to the relay daemon failed: the receiver connects again",
	Detached:     "The session is detached for now: it holds more of the memory budget than it may. Open calls are not paired",
}

// relay attaches a session of a relay daemon.
type relay struct {
	env     *Environment
	session lttnglive.Session
}

// relayConnection is a session attached on one connection.
type relayConnection struct {
	*lttnglive.Attachment
	conn    net.Conn
	version lttnglive.Version
}

func (c *relayConnection) Close() error { return c.conn.Close() }

func (c *relayConnection) Fields() []zap.Field {
	return []zap.Field{zap.Stringer("relay_version", c.version)}
}

// Identified and Resume do nothing: a relay daemon parses no metadata, and sends a session from its beginning.
func (*relayConnection) Identified(*ctf.Trace)              {}
func (*relayConnection) Resume(uint64, merge.Position) bool { return true }

// attach attaches the session on a new connection.
func (r *relay) attach(ctx context.Context, room func(bytes int) error, hasRead bool) (Connection, []lttnglive.Stream, error) {
	conn, viewer, err := r.env.Connect(ctx, room)
	if err != nil {
		return nil, nil, err
	}
	attached, streams, err := r.attachOn(ctx, viewer, hasRead)
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return &relayConnection{attached, conn, viewer.RelayVersion()}, streams, nil
}

func (r *relay) attachOn(ctx context.Context, viewer *lttnglive.Viewer, hasRead bool) (*lttnglive.Attachment, []lttnglive.Stream, error) {
	if err := r.checkListed(ctx, viewer); err != nil {
		return nil, nil, protocolError(err)
	}
	seek := lttnglive.SeekBeginning
	if r.env.Settings.FromNow && !hasRead {
		seek = lttnglive.SeekLast
	}
	attached, streams, err := viewer.Attach(ctx, r.session.ID, seek)
	if err != nil {
		var status *lttnglive.StatusError
		if errors.As(err, &status) && status.Status == lttnglive.AttachUnknown {
			return nil, nil, errGone
		}
		return nil, nil, protocolError(err)
	}
	return attached, streams, nil
}

// checkListed returns errGone if the relay daemon does not list the session. Its ID is valid as long as
// the relay daemon runs.
func (r *relay) checkListed(ctx context.Context, viewer *lttnglive.Viewer) error {
	sessions, err := viewer.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, listed := range sessions {
		if listed.ID == r.session.ID && listed.Host == r.session.Host && listed.Name == r.session.Name {
			return nil
		}
	}
	return errGone
}
