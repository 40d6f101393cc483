// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
)

// Identity is what is known of a server's process.
type Identity struct {
	// PID is its process ID; 0: unknown.
	PID int64
	// Session is the ID of our last session with the console, which the server counts from its
	// start; 0: unknown. It rises while the server is the same.
	Session int64
	// Version is the server's; empty: unknown.
	Version  string
	Protocol greys.Protocol
	// Host is the machine of the process; empty: unknown.
	Host string
	// Sessions is how many sessions the server has, where HasSessions.
	Sessions    int
	HasSessions bool
}

// IsOther reports whether a server is another process now, or was restarted. Unknown values do not
// count.
func (before Identity) IsOther(now Identity) bool {
	switch {
	case before.Protocol != now.Protocol:
		return true
	case before.Session != 0 && now.Session != 0 && now.Session <= before.Session:
		return true
	case before.PID != 0 && now.PID != 0 && before.PID != now.PID:
		return true
	default:
		return before.Version != "" && now.Version != "" && before.Version != now.Version
	}
}

// Identify asks the server for its version, its process and its sessions. A value that the server
// does not support, or refuses, stays unknown, and so does a version that can't be decoded.
func (s *Settings) Identify(ctx context.Context, l *link.Link) (Identity, error) {
	who := Identity{Protocol: l.Protocol}
	err := s.control(ctx, l, greys.VersionCommand{}, func(reply greys.Reply) {
		if version, is := reply.(*greys.Version); is {
			who.Version = version.Text
		}
	})
	if err != nil && !isReply(err) && (ctx.Err() != nil || endsLink(l, err)) {
		return who, err
	}
	return who, s.askSessions(ctx, l, &who)
}

// askSessions asks for the server's process and sessions.
func (s *Settings) askSessions(ctx context.Context, l *link.Link, who *Identity) error {
	err := s.control(ctx, l, greys.SessionsCommand{}, func(reply greys.Reply) {
		if sessions, is := reply.(*greys.Sessions); is {
			who.PID = max(0, sessions.ProcessID)
			if l.Protocol == greys.ProtocolGP {
				who.Sessions, who.HasSessions = len(sessions.Sessions), true
			} else if len(sessions.Sessions) == 1 {
				who.Session = sessions.Sessions[0].ID
			}
		}
	})
	if isReply(err) {
		return nil
	}
	return err
}

// endsLink reports whether an error of a question for the identity shows that the server can't be
// asked any more. Other errors are of this question only.
func endsLink(l *link.Link, err error) bool {
	version := (*gp.VersionError)(nil)
	return errors.Is(err, greys.ErrHTTP) || l.IsLost() || l.Unsent(err) || errors.As(err, &version)
}

// identityCheck decides when the server is asked for its identity.
type identityCheck struct {
	settings *Settings
	pauses   *backoff.Backoff
	// due is when the server is asked next, last when it was asked last.
	due, last time.Time
	// doubted: a command was lost since. Nothing else is asked before the server has identified
	// itself.
	doubted bool
	// failed is how often in a row the server did not identify itself.
	failed int
}

func newIdentityCheck(s *Settings) identityCheck {
	return identityCheck{settings: s, pauses: backoff.New(s.Reconnect), due: s.Now().Add(s.StateInterval)}
}

// doubt has the server asked soon.
func (c *identityCheck) doubt() {
	c.doubted = true
	c.due = earlier(c.due, c.last.Add(c.settings.Reconnect.InitialInterval))
}

// maxFailedChecks: after so many in a row the server counts as lost.
const maxFailedChecks = 3

// asked enters a check, which has failed or not. It reports whether the server counts as lost.
func (c *identityCheck) asked(err error) (lost bool) {
	c.last = c.settings.Now()
	if err == nil {
		c.failed, c.doubted = 0, false
		c.pauses.Reset()
		c.due = c.last.Add(c.settings.StateInterval)
		return false
	}
	c.failed++
	c.due = c.last.Add(c.pauses.Pause())
	return c.failed >= maxFailedChecks
}
