// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/greys"
)

// What commands put into classes stays there when they end, until a reset takes it out. A
// reset takes out of a class what all commands have put there, those that run included: they
// would hear of no call any more. So one is asked for only where no command of ours runs
// that may have put something into the same classes: by GP, where the patterns say so; on
// the console a reset is for all classes, so where no command runs at all. Until then it is
// owed. What others have put into the same classes is lost with it, and what a collector
// has put there that was killed is not known of.

// maxLayers is how often commands may have put something into classes, without a reset,
// beyond once for each: commands that are lost again and again would put one thing over the
// other. Then all are ended, what they put there is taken out, and they are asked again.
const maxLayers = 16

// round is resets that the server is asked for together. No command is begun meanwhile: what
// it puts into classes would be taken out, too.
type round struct {
	of []classes
	// cleans says that commands are ended for it, and wait.
	cleans bool
	// orders are those of somebody's that are among them.
	orders []*order
}

// clean begins to ask for the resets that are owed, or that somebody wants, and can be asked
// for. All together have the time of one.
func (a *attending) clean(now time.Time) {
	p := a.process
	if a.round != nil || a.doubted || len(p.owed)+len(a.resetting) == 0 || now.Before(a.resetAt) {
		return
	}
	if (p.poisoned.Load() || p.layers > len(p.tasks)+maxLayers) && !a.cleaning {
		a.endForCleaning()
	}
	next := a.resettable()
	if len(next.of) == 0 {
		return
	}
	if len(next.orders) > 0 {
		a.resetting = nil
	}
	a.round, next.cleans = next, a.cleaning
	ctx, end := context.WithTimeoutCause(a.ctx, controlTimeout(a.server.env.config), errSlow)
	go func() {
		defer end()
		a.roundEnded <- a.askResets(ctx, next.of)
	}()
}

// haveReset is told what came of the resets that were asked for: each has failed or not.
func (a *attending) haveReset(failed []error) {
	p, done := a.process, a.round
	a.round = nil
	p.paid(done.of, failed)
	done.say(failed)
	a.sayStays(done.of, failed)
	err := errors.Join(failed...)
	if err == nil {
		a.server.resetting.Over()
		a.resetPauses.Reset()
	} else {
		a.failedReset(err)
	}
	// What could not be taken out is tried again, and commands don't wait for it: they would for
	// ever where a server never answers resets.
	if len(p.owed) == 0 || isAnswer(err) || done.cleans {
		p.layers, a.cleaning = 0, len(a.resetting) > 0
		p.poisoned.Store(false)
	}
}

// failedReset pauses until resets are asked for again.
func (a *attending) failedReset(why error) {
	now := a.server.env.now()
	if len(a.resetting) == 0 { // who wants one needn't wait
		a.resetAt = now.Add(a.resetPauses.Pause())
	}
	if since, say := a.server.resetting.Say(now); say && a.ctx.Err() == nil {
		a.server.logger.Warn("What commands have put into classes could not be taken out",
			zap.Error(why), zap.Int("times_since_last_line", since))
	}
}

// endForCleaning ends all commands that may have put something into classes. None is asked
// again before what is owed was asked to be taken out, once.
func (a *attending) endForCleaning() {
	a.cleaning = true
	for _, t := range a.process.tasks {
		if t.run != nil && t.kind.enhances() {
			t.run.end(errCleaning)
		}
	}
}

// busy are the classes that running commands may have put something into.
func (a *attending) busy() (busy []classes) {
	for _, t := range a.process.tasks {
		if t.run != nil && t.kind.enhances() {
			busy = append(busy, t.classes)
		}
	}
	return busy
}

// resettable are the resets that can be asked for: those of classes that no running command
// may have put something into.
func (a *attending) resettable() *round {
	busy := a.busy()
	switch {
	case len(busy) == 0:
		next := &round{orders: a.resetting}
		for _, o := range a.resetting {
			next.add(o.classes)
		}
		for _, c := range a.process.owed {
			next.add(c)
		}
		return next
	case a.link.resetsAll, a.cleaning:
		return &round{}
	default:
		return &round{of: slices.DeleteFunc(slices.Clone(a.process.owed), func(c classes) bool { return c.mayMeetAny(busy) })}
	}
}

// add adds classes once.
func (r *round) add(c classes) {
	if !slices.Contains(r.of, c) {
		r.of = append(r.of, c)
	}
}

// resetsAtOnce is how many resets are asked for at once.
const resetsAtOnce = 4

// askResets asks for resets, and waits for them: each has an error or none. It is for any
// goroutine.
func (a *attending) askResets(ctx context.Context, of []classes) (failed []error) {
	if a.link.resetsAll { // one is for all
		return slices.Repeat([]error{a.askReset(ctx, of[0])}, len(of))
	}
	failed = make([]error, len(of))
	var resetting sync.WaitGroup
	places := make(chan struct{}, resetsAtOnce)
	for i, c := range of {
		places <- struct{}{}
		resetting.Go(func() {
			defer func() { <-places }()
			failed[i] = a.askReset(ctx, c)
		})
	}
	resetting.Wait()
	return failed
}

// askReset asks for a reset, and counts it.
func (a *attending) askReset(ctx context.Context, of classes) error {
	err := a.control(ctx, greys.ResetCommand{Class: of.pattern, Regexp: of.regexp}, func(greys.Reply) {})
	outcome := resetDone
	if err != nil {
		outcome = resetFailed
	}
	a.server.env.telemetry.reset(outcome)
	return err
}

// paid is told of resets: what is done is owed no longer. What could not be stays in the
// classes, and is owed, unless the server doesn't know resets.
func (p *process) paid(of []classes, failed []error) (stays []classes) {
	for i, c := range of {
		if failed[i] != nil {
			stays = append(stays, c)
		}
		if failed[i] == nil || errors.Is(failed[i], greys.ErrUnsupported) {
			p.owed = slices.DeleteFunc(p.owed, func(owed classes) bool { return owed == c })
		}
	}
	return stays
}

var errFarewell = errors.New("the time for it at a shutdown is over")

// leave ends all commands at a shutdown, and leaves the server as it was found.
func (a *attending) leave() {
	a.halt()
	a.resetAtLast(a.server.env.asking)
}

// resetAtLast asks for all resets that are owed, once, when no command runs any more.
func (a *attending) resetAtLast(ctx context.Context) {
	of := slices.Clone(a.process.owed)
	if len(of) == 0 {
		return
	}
	failed := a.askResets(ctx, of)
	if stays := a.process.paid(of, failed); len(stays) > 0 {
		a.server.stays(stays, errors.Join(failed...))
	}
}
