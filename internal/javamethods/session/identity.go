// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// Identity identifies a server's process.
type Identity struct {
	// PID is its process ID; 0 means unknown.
	PID int64
	// Session is the ID of our last session with the console; 0 means unknown. The server counts sessions from its
	// start, so a lower number shows a restart.
	Session int64
	// Version is the server's version; empty means unknown.
	Version  string
	Protocol string
	// Host is the machine of the process; empty means unknown.
	Host string
	// Started is the start of the process as the server writes it; empty means unknown.
	Started string
	// Sessions is the number of the server's sessions, valid if HasSessions.
	Sessions    int
	HasSessions bool
}

// IsOther reports whether a server is another process now, or was restarted. It ignores unknown values.
func (before Identity) IsOther(now Identity) bool {
	switch {
	case before.Protocol != now.Protocol:
		return true
	case before.Session != 0 && now.Session != 0 && now.Session <= before.Session:
		return true
	case before.PID != 0 && now.PID != 0 && before.PID != now.PID:
		return true
	case isOtherText(before.Host, now.Host), isOtherText(before.Started, now.Started):
		return true
	default:
		return isOtherText(before.Version, now.Version)
	}
}

// isOtherText reports whether two known texts differ.
func isOtherText(before, now string) bool { return before != "" && now != "" && before != now }

// Identify requests the server's version, process and sessions. A value stays unknown if the server does not support or
// refuses the command. The version also stays unknown if it cannot be decoded.
func (s *Settings) Identify(ctx context.Context, l *Link) (Identity, error) {
	who := Identity{Protocol: l.Protocol}
	err := s.control(ctx, l, javamethods.VersionCommand{}, func(reply javamethods.Reply) {
		if version, is := reply.(*javamethods.Version); is {
			who.Version = version.Text
		}
	})
	if err != nil && !isReply(err) && (ctx.Err() != nil || l.endsBy(err)) {
		return who, err
	}
	return who, s.askSessions(ctx, l, &who)
}

// askSessions requests the server's process and sessions.
func (s *Settings) askSessions(ctx context.Context, l *Link, who *Identity) error {
	err := s.control(ctx, l, javamethods.SessionsCommand{}, func(reply javamethods.Reply) {
		if sessions, is := reply.(*javamethods.Sessions); is {
			who.PID, who.Host, who.Started = max(0, sessions.ProcessID), sessions.Host, sessions.Started
			if l.CountsSessions {
				who.Sessions, who.HasSessions = len(sessions.Sessions), true
			} else if l.NumbersSessions && len(sessions.Sessions) == 1 {
				who.Session = sessions.Sessions[0].ID
			}
		}
	})
	if isReply(err) {
		return nil
	}
	return err
}

// identityCheck decides when the receiver checks the server's identity.
type identityCheck struct {
	settings *Settings
	pauses   *backoff.Backoff
	// due is the time of the next check, last the time of the last one.
	due, last time.Time
	// doubted means that a command was lost since the last check. No other command is sent before the server has
	// identified itself.
	doubted bool
	// failed is the number of consecutive failed checks.
	failed int
}

func newIdentityCheck(s *Settings) identityCheck {
	return identityCheck{settings: s, pauses: backoff.New(s.Reconnect), due: s.Now().Add(s.StateInterval)}
}

// doubt schedules an early check.
func (c *identityCheck) doubt() {
	c.doubted = true
	c.due = earlier(c.due, c.last.Add(c.settings.Reconnect.InitialInterval))
}

// maxFailedChecks is the number of consecutive failed checks after which the server counts as lost.
const maxFailedChecks = 3

// checked records the result of a check. It reports whether the server counts as lost.
func (c *identityCheck) checked(err error) (lost bool) {
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
