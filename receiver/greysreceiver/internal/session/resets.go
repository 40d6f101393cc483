// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
)

// Code of commands stays in classes when they end, until a reset removes it. A reset removes the
// code of all commands from a class, running ones included, which would see no call any more. So a
// reset is asked for only while no command of ours runs that may have instrumented the same
// classes: by GP, where the patterns show that; by the console, whose resets are for all classes,
// while no command runs at all. Until then the reset is owed. A reset removes the code of other
// clients, too. Code that a killed collector has left is not known.

// maxLayers: after so many instrumentations beyond one for each task, without a reset, all commands
// are ended for a reset. Commands that are lost again and again would put code over code.
const maxLayers = 16

// resets are the resets that one process is owed, or that operators want.
type resets struct {
	settings *Settings
	// owed are classes that may have code of commands that have ended.
	owed []greys.Classes
	// layers is how many runs may have instrumented classes since the last reset.
	layers int
	// poisoned: the server has refused a command, and may have left code in classes for which it
	// refuses others. All are ended, the code is removed, and they are asked for again.
	poisoned atomic.Bool
	failing  logline.Burst

	// All below is of one link.

	// cleaning: all commands are ended, and wait for a reset.
	cleaning bool
	// round is the resets that are asked for now; nil: none.
	round *round
	// orders are those that wait for a reset to be asked for.
	orders []*Order
	// due is when a reset is asked for at the earliest, after a failed one.
	due    time.Time
	pauses *backoff.Backoff
}

// round is resets that are asked for together. No command begins meanwhile: its code would be
// removed, too.
type round struct {
	of []greys.Classes
	// afterCleaning: commands were ended for it, and wait.
	afterCleaning bool
	orders        []*Order
}

func newResets(s *Settings) resets { return resets{settings: s} }

// connected begins with a new link.
func (r *resets) connected() {
	r.cleaning, r.round, r.orders, r.due, r.pauses = false, nil, nil, time.Time{}, backoff.New(r.settings.Reconnect)
}

// owe enters a run that may have instrumented classes.
func (r *resets) owe(c greys.Classes) {
	if !slices.Contains(r.owed, c) {
		r.owed = append(r.owed, c)
	}
}

// overload has all commands ended for a reset.
func (r *resets) overload(jobs int) { r.layers = jobs + maxLayers + 1 }

// isWaiting reports whether no command may begin: one would prevent a reset, or be hit by it.
func (r *resets) isWaiting() bool { return r.cleaning || r.round != nil }

// isDue reports whether a reset may be asked for now.
func (r *resets) isDue(now time.Time) bool {
	return r.round == nil && len(r.owed)+len(r.orders) > 0 && !now.Before(r.due)
}

// needsCleaning reports whether commands have to be ended for a reset.
func (r *resets) needsCleaning(jobs int) bool {
	return !r.cleaning && (r.poisoned.Load() || r.layers > jobs+maxLayers)
}

// enterOrder enters an order for a reset. Cancelled ones are dropped.
func (r *resets) enterOrder(o *Order) {
	r.orders = append(slices.DeleteFunc(r.orders, (*Order).isCancelled), o)
	r.due = time.Time{}
	r.cleaning = true
}

// startRound starts the resets that can be asked for while commands run that may have instrumented busy
// classes. It returns nil where none can. resetsAll: a reset is for all classes.
func (r *resets) startRound(busy []greys.Classes, resetsAll bool) *round {
	next := &round{afterCleaning: r.cleaning}
	switch {
	case len(busy) == 0:
		for _, o := range r.orders {
			next.add(o.Classes)
		}
		for _, c := range r.owed {
			next.add(c)
		}
		next.orders, r.orders = r.orders, nil
	case !resetsAll && !r.cleaning:
		next.of = slices.DeleteFunc(slices.Clone(r.owed), func(c greys.Classes) bool { return c.MayOverlapAny(busy) })
	}
	if len(next.of) == 0 {
		return nil
	}
	r.round = next
	return next
}

func (n *round) add(c greys.Classes) {
	if !slices.Contains(n.of, c) {
		n.of = append(n.of, c)
	}
}

// endRound enters the results of the current resets, each an error or nil, and returns the round.
func (r *resets) endRound(failed []error, over bool) *round {
	done := r.round
	r.round = nil
	r.pay(done.of, failed)
	for _, o := range done.orders {
		switch err := failed[slices.Index(done.of, o.Classes)]; {
		case err == nil:
			o.succeed("the classes are restored")
		case isReply(err):
			o.Fail(agentcontrol.Errorf(agentcontrol.Refused, "%w", err))
		default:
			o.Fail(agentcontrol.Errorf(agentcontrol.NoAnswer, "the server has not confirmed the reset: %w", err))
		}
	}
	err := errors.Join(failed...)
	if err == nil {
		r.failing.Over()
		r.pauses.Reset()
	} else {
		r.retry(err, over)
	}
	// A failed reset is tried again, and commands do not wait for it: some servers never answer one.
	if len(r.owed) == 0 || isReply(err) || done.afterCleaning {
		r.layers, r.cleaning = 0, len(r.orders) > 0
		r.poisoned.Store(false)
	}
	return done
}

// retry pauses until resets are asked for again. An operator's order does not wait.
func (r *resets) retry(why error, over bool) {
	now := r.settings.Now()
	if len(r.orders) == 0 {
		r.due = now.Add(r.pauses.Pause())
	}
	if since, say := r.failing.Say(now); say && !over {
		r.settings.Logger.Warn("A reset failed, and is tried again: classes keep code of commands",
			zap.Error(why), zap.Int("times_since_last_line", since))
	}
}

// pay removes the classes from those that are owed whose reset is done, or not supported. It
// returns the classes whose reset has failed.
func (r *resets) pay(of []greys.Classes, failed []error) (stay []greys.Classes) {
	for i, c := range of {
		if failed[i] != nil {
			stay = append(stay, c)
		}
		if failed[i] == nil || errors.Is(failed[i], greys.ErrUnsupported) {
			r.owed = slices.DeleteFunc(r.owed, func(owed greys.Classes) bool { return owed == c })
		}
	}
	return stay
}

// resetsAtOnce is how many resets are asked for at the same time.
const resetsAtOnce = 4

// askResets asks for resets, and returns an error or nil for each. Several goroutines may call it.
func (s *Settings) askResets(ctx context.Context, l *link.Link, of []greys.Classes) (failed []error) {
	if l.ResetsAll { // one is for all
		return slices.Repeat([]error{s.askReset(ctx, l, of[0])}, len(of))
	}
	failed = make([]error, len(of))
	var asking sync.WaitGroup
	places := make(chan struct{}, resetsAtOnce)
	for i, c := range of {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			failed[i] = s.askReset(ctx, l, c)
		})
	}
	asking.Wait()
	return failed
}

// askReset asks for a reset, and counts it.
func (s *Settings) askReset(ctx context.Context, l *link.Link, of greys.Classes) error {
	err := s.control(ctx, l, greys.ResetCommand{Class: of.Pattern, Regexp: of.Regexp}, func(greys.Reply) {})
	s.Counters.Reset(err)
	return err
}

// askLast asks once for all resets that are owed, when no command runs any more.
func (r *resets) askLast(ctx context.Context, l *link.Link) {
	of := slices.Clone(r.owed)
	if len(of) == 0 {
		return
	}
	failed := r.settings.askResets(ctx, l, of)
	if stay := r.pay(of, failed); len(stay) > 0 {
		r.logLeftovers(stay, errors.Join(failed...))
	}
}

// logFailure counts and logs at the end that no reset could be asked for.
func (r *resets) logFailure(why error) {
	r.settings.Counters.Reset(why)
	r.logLeftovers(r.owed, why)
}

func (r *resets) logLeftovers(of []greys.Classes, why error) {
	patterns := make([]string, 0, len(of))
	for _, c := range of {
		patterns = append(patterns, c.Pattern.String())
	}
	r.settings.Logger.Warn("No reset was possible: classes keep code of commands", zap.Strings("patterns", patterns), zap.Error(why))
}
