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
	"github.com/callbraid/callbraid/internal/javamethods"
)

// The instrumentation of a command stays in classes after its end, until a reset removes it. A reset removes the
// instrumentation of all commands from a class. Running commands would then see no more calls. So the receiver sends a
// reset only while none of its running commands may have instrumented the same classes. By GP the patterns show that.
// The console resets all classes, so no command at all may run. Until then the reset is owed. A reset also affects
// other clients. Instrumentation that a killed collector has left is unknown.

// maxLayers limits the instrumentations without a reset, beyond one for each task. Then all commands are ended for a
// reset. Without that, commands that are lost repeatedly would add layers of instrumentation.
const maxLayers = 16

// resets are the resets that one process needs or operators have ordered.
type resets struct {
	settings *Settings
	// owed are classes that may have instrumentation of ended commands.
	owed []javamethods.Classes
	// layers is the number of runs that may have instrumented classes since the last reset.
	layers int
	// poisoned means that the server has refused a command. It may have left instrumentation because of which it
	// refuses others. All commands are ended, a reset runs, and the commands are sent again.
	poisoned atomic.Bool
	failing  logline.Burst

	// The fields below belong to one link.

	// cleaning means that all commands are ended and wait for a reset.
	cleaning bool
	// round is the running set of resets; nil means none.
	round *round
	// orders are the orders that wait for their reset to be sent.
	orders []*Order
	// due is the earliest time of the next reset, after a failed one.
	due    time.Time
	pauses *backoff.Backoff
}

// round is a set of resets that run together. No command begins meanwhile, because the resets would remove its
// instrumentation.
type round struct {
	of []javamethods.Classes
	// afterCleaning means that commands were ended for it, and wait.
	afterCleaning bool
	orders        []*Order
}

func newResets(s *Settings) resets { return resets{settings: s} }

// connected prepares for a new link.
func (r *resets) connected() {
	r.cleaning, r.round, r.orders, r.due, r.pauses = false, nil, nil, time.Time{}, backoff.New(r.settings.Reconnect)
}

// owe adds classes that a run may have instrumented.
func (r *resets) owe(c javamethods.Classes) {
	if !slices.Contains(r.owed, c) {
		r.owed = append(r.owed, c)
	}
}

// overload causes the end of all commands for a reset.
func (r *resets) overload(jobs int) { r.layers = jobs + maxLayers + 1 }

// isWaiting reports whether no command may begin: it would prevent a reset, or be affected by it.
func (r *resets) isWaiting() bool { return r.cleaning || r.round != nil }

// isDue reports whether a reset may be sent now.
func (r *resets) isDue(now time.Time) bool {
	return r.round == nil && len(r.owed)+len(r.orders) > 0 && !now.Before(r.due)
}

// needsCleaning reports whether commands have to be ended for a reset.
func (r *resets) needsCleaning(jobs int) bool {
	return !r.cleaning && (r.poisoned.Load() || r.layers > jobs+maxLayers)
}

// enterOrder adds an order for a reset, and removes cancelled ones.
func (r *resets) enterOrder(o *Order) {
	r.orders = append(slices.DeleteFunc(r.orders, (*Order).isCancelled), o)
	r.due = time.Time{}
	r.cleaning = true
}

// startRound starts the resets that are possible while running commands may have instrumented the busy classes. It
// returns nil if there are none. resetsAll means that a reset affects all classes.
func (r *resets) startRound(busy []javamethods.Classes, resetsAll bool) *round {
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
		next.of = slices.DeleteFunc(slices.Clone(r.owed), func(c javamethods.Classes) bool { return c.MayOverlapAny(busy) })
	}
	if len(next.of) == 0 {
		return nil
	}
	r.round = next
	return next
}

func (n *round) add(c javamethods.Classes) {
	if !slices.Contains(n.of, c) {
		n.of = append(n.of, c)
	}
}

// endRound handles the results of the current resets, each an error or nil, and returns the round.
func (r *resets) endRound(failed []error, over bool) *round {
	done := r.round
	r.round = nil
	r.settleOwed(done.of, failed)
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
	// A failed reset is sent again, and commands do not wait for it: some servers never answer one.
	if len(r.owed) == 0 || isReply(err) || done.afterCleaning {
		r.layers, r.cleaning = 0, len(r.orders) > 0
		r.poisoned.Store(false)
	}
	return done
}

// retry delays the next resets. An order of an operator is not delayed.
func (r *resets) retry(why error, over bool) {
	now := r.settings.Now()
	if len(r.orders) == 0 {
		r.due = now.Add(r.pauses.Pause())
	}
	if since, due := r.failing.Count(now); due && !over {
		r.settings.Logger.Warn("A reset failed, and is tried again: classes keep code of commands",
			zap.Error(why), zap.Int("times_since_last_line", since))
	}
}

// settleOwed removes classes from the owed ones if their reset succeeded or is unsupported. It returns the classes
// whose reset has failed.
func (r *resets) settleOwed(of []javamethods.Classes, failed []error) (rest []javamethods.Classes) {
	for i, c := range of {
		if failed[i] != nil {
			rest = append(rest, c)
		}
		if failed[i] == nil || errors.Is(failed[i], javamethods.ErrUnsupported) {
			r.owed = slices.DeleteFunc(r.owed, func(owed javamethods.Classes) bool { return owed == c })
		}
	}
	return rest
}

// resetsAtOnce is the maximum number of simultaneous resets.
const resetsAtOnce = 4

// askResets sends resets, and returns an error or nil for each. Several goroutines may call it.
func (s *Settings) askResets(ctx context.Context, l *Link, of []javamethods.Classes) (failed []error) {
	if l.ResetsAll { // one reset is enough
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

// askReset sends a reset and counts its result.
func (s *Settings) askReset(ctx context.Context, l *Link, of javamethods.Classes) error {
	err := s.control(ctx, l, javamethods.ResetCommand{Class: of.Pattern, Regexp: of.Regexp}, func(javamethods.Reply) {})
	s.Counters.Reset(err)
	return err
}

// askLast sends all owed resets once. No command runs any more.
func (r *resets) askLast(ctx context.Context, l *Link) {
	of := slices.Clone(r.owed)
	if len(of) == 0 {
		return
	}
	failed := r.settings.askResets(ctx, l, of)
	if rest := r.settleOwed(of, failed); len(rest) > 0 {
		r.logLeftovers(rest, errors.Join(failed...))
	}
}

// logFailure counts and logs at the end that no reset could be sent.
func (r *resets) logFailure(why error) {
	r.settings.Counters.Reset(why)
	r.logLeftovers(r.owed, why)
}

func (r *resets) logLeftovers(of []javamethods.Classes, why error) {
	patterns := make([]string, 0, len(of))
	for _, c := range of {
		patterns = append(patterns, c.Pattern.String())
	}
	r.settings.Logger.Warn("No reset was possible: classes keep code of commands", zap.Strings("patterns", patterns), zap.Error(why))
}
