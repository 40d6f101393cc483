// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/gp"
)

// meet asks the server who it is. What it doesn't support, or refuses to say, stays unknown,
// and so does a version that is not understood.
func (a *attending) meet(ctx context.Context) (identity, error) {
	who := identity{protocol: a.link.protocol}
	err := a.control(ctx, greys.VersionCommand{}, func(reply greys.Reply) {
		if version, is := reply.(*greys.Version); is {
			who.version = version.Text
		}
	})
	if err != nil && !isAnswer(err) && (ctx.Err() != nil || a.loses(err)) {
		return who, err
	}
	if err = a.askSessions(ctx, &who); err != nil {
		return who, err
	}
	if remote := a.server.remote.Load(); remote != nil && isHere(*remote, who.pid) {
		who.host = a.server.env.host
	}
	return who, nil
}

// askSessions asks for the server's process, and for sessions.
func (a *attending) askSessions(ctx context.Context, who *identity) error {
	err := a.control(ctx, greys.SessionsCommand{}, func(reply greys.Reply) {
		if sessions, is := reply.(*greys.Sessions); is {
			who.pid = max(0, sessions.ProcessID)
			if a.link.protocol == ProtocolGP {
				who.sessions, who.hasSessions = len(sessions.Sessions), true
			} else if len(sessions.Sessions) == 1 {
				who.session = sessions.Sessions[0].ID
			}
		}
	})
	if err != nil && !isAnswer(err) {
		return err
	}
	return nil
}

// loses reports whether an error of asking who the server is says that it can't be asked any
// more. Others are of what it said to this question, and of its taking too long.
func (a *attending) loses(err error) bool {
	version := (*gp.VersionError)(nil)
	if errors.Is(err, greys.ErrHTTP) {
		return true
	}
	return a.link.isLost() || a.link.unsent(err) || errors.As(err, &version)
}

// isAnswer reports whether an error is what the server says to a command that it has
// understood.
func isAnswer(err error) bool {
	return errors.Is(err, greys.ErrUnsupported) || errors.Is(err, greys.ErrRefused)
}

// maxUnsaid is how often a server may not say who it is, one time after the other, until it is
// taken for lost.
const maxUnsaid = 3

// checkProcess asks the server who it is, and says when it is asked again. Where it doesn't
// say it that is soon, and the commands that run are not disturbed.
func (a *attending) checkProcess(ctx context.Context) error {
	err := a.compare(ctx)
	a.checked = a.server.env.now()
	if err == nil {
		a.unsaid, a.doubted = 0, false
		a.checkPauses.Reset()
		a.check = a.checked.Add(a.server.env.config.StateInterval)
		return nil
	}
	if a.unsaid++; a.unsaid >= maxUnsaid || a.loses(err) {
		return err
	}
	a.check = a.checked.Add(a.checkPauses.Pause())
	return nil
}

// compare asks the server who it is, and begins anew if it is another one.
func (a *attending) compare(ctx context.Context) error {
	if a.link.lost != nil && a.server.who.pid == 0 {
		return nil // it doesn't say it, and a link that is lost is heard of
	}
	who := identity{protocol: a.link.protocol, host: a.server.who.host}
	answered := a.server.answered.Load()
	if err := a.askSessions(ctx, &who); err != nil {
		return err
	}
	a.process.setSessions(who)
	if !a.server.who.isOther(who) {
		a.server.saw(who)
		if a.link.protocol == ProtocolConsole {
			a.suspect(a.server.sessions.saw(who.session, answered, a.server.dials.Load()))
		}
		return nil
	}
	who, err := a.meet(ctx)
	if err != nil {
		return err
	}
	a.drain()
	a.halt()
	pause := a.server.restartPause()
	a.server.mu.Lock()
	a.server.begin(who)
	a.server.mu.Unlock()
	a.begin(ctx, pause)
	return nil
}
