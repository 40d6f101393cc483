// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/greys/console"
)

// saidBounds is what the log was told of bounds that a server has reached. It is for the
// goroutine that follows the server.
type saidBounds struct {
	process                   *process
	folded, inventory, nodes  int64
	folding, listing, treeing logline.Burst
	failure                   string
	failureAt                 time.Time
	failures                  int
	changes                   logline.Seldom
}

// sayBounds says which bounds were reached since it was called last, once for a burst.
func (a *attending) sayBounds() {
	said, p := &a.server.bounds, a.process
	p.mu.Lock()
	folded, inventory, nodes := p.calls.folded, p.inventory.dropped, p.nodesDropped
	p.mu.Unlock()
	if said.process != p {
		said.process, said.folded, said.inventory, said.nodes = p, 0, 0, 0
	}
	limits := &a.server.env.config.Limits
	methods, setting := a.server.env.config.methodsOfServer()
	for _, of := range []struct {
		now    int64
		before *int64
		burst  *logline.Burst
		text   string
		limit  zap.Field
	}{
		{folded, &said.folded, &said.folding, "More methods are counted than have counts of their own: the others are counted as other", zap.String("setting", fmt.Sprintf("%s: %d methods for this server", setting, methods))},
		{inventory, &said.inventory, &said.listing, "More classes and methods are listed than are remembered: the others are left out", zap.Int("limits.max_inventory", limits.MaxInventory)},
		{nodes, &said.nodes, &said.treeing, "A call tree has more calls than are handed on: the rest is left out", zap.Int("limits.max_tree_nodes", limits.MaxTreeNodes)},
	} {
		new := of.now - *of.before
		*of.before = of.now
		if new <= 0 {
			continue
		}
		if _, say := of.burst.Say(a.server.env.now()); say {
			a.server.logger.Warn(of.text, of.limit, zap.Int64("left_out", new))
		}
	}
}

// sayShortened says that a list has more than its limit, once until it has not.
func (a *attending) sayShortened(r *run) {
	t := r.task
	if !errors.Is(context.Cause(r.ctx), errEnough) {
		t.shortened.Over()
		return
	}
	if _, say := t.shortened.Say(a.server.env.now()); say {
		a.server.logger.Warn("A list has more than its limit: the rest is left out, and what is gone is not noticed. Raise limit, or set it to -1 for all",
			append(t.fields(), zap.Int32("limit", int32(t.limit)))...)
	}
}

// How often a failure is said that lasts, and after what time without an answer it is said that
// a server has not said who it is. It may still do so: it is waited for.
const (
	usualRepeatAfter = 10 * time.Minute
	usualSilentAfter = 8 * time.Second
)

// sayUnanswered says that a server has not said who it is yet, once until it does, or fails for
// another reason. It is for any goroutine.
func (s *server) sayUnanswered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != phaseProbing {
		return // it has answered, or failed, just now
	}
	s.health.Failed(errUnanswered)
	if since, say := s.unanswered.Say(s.env.now()); say {
		s.logger.Warn("The server has not said who it is: its process hangs, or something else listens at the port. It is waited for",
			zap.Duration("after", s.env.silentAfter), zap.Int("times_since_last_line", since))
	}
}

var errUnanswered = errors.New("it accepts connections, and has not said who it is")

// isSilence reports whether a failure is that nothing came in time.
func isSilence(why error) bool {
	return errors.Is(why, errSilent) || errors.Is(why, errSlow) || errors.Is(why, console.ErrTimeout)
}

// sayFailure reports whether a failure of a server is to be said: the first of a burst, one for
// another reason, and one that has lasted. since is how many there were since it was said last.
func (s *server) sayFailure(why error, now time.Time) (since int, say bool) {
	b := &s.bounds
	b.failures++
	reason := withoutNumbers(why.Error())
	_, say = s.failing.Say(now)
	if !say && reason != b.failure && b.failure != "" {
		_, say = b.changes.Say(now)
	}
	if !say && (b.failure == "" || now.Sub(b.failureAt) < s.env.repeatAfter) {
		return 0, false
	}
	since, b.failures = b.failures, 0
	b.failure, b.failureAt = reason, now
	return since, true
}

// withoutNumbers is the text of an error without what is another each time, such as ports.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}
