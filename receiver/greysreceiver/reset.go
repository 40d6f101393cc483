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

// clean asks for the resets that are owed and can be asked for.
func (a *attending) clean(ctx context.Context, now time.Time) {
	p := a.process
	if len(p.owed) == 0 || now.Before(a.resetAt) {
		return
	}
	if p.layers > len(p.tasks)+maxLayers && !a.cleaning {
		a.endForCleaning()
	}
	_, err := a.reset(ctx, a.resettable())
	a.sayReset(err)
	if err == nil {
		a.server.resetting.Over()
		a.resetPauses.Reset()
	} else {
		a.resetAt = now.Add(a.resetPauses.Pause())
		if since, say := a.server.resetting.Say(now); say && ctx.Err() == nil {
			a.server.logger.Warn("What commands have put into classes could not be taken out",
				zap.Error(err), zap.Int("times_since_last_line", since))
		}
	}
	// What a server has refused is tried again, and commands needn't wait for it.
	if len(p.owed) == 0 || isAnswer(err) {
		p.layers, a.cleaning = 0, false
	}
}

// endForCleaning ends all commands that may have put something into classes. None is asked
// again before nothing is owed.
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

// resettable are the classes that no running command may have put something into.
func (a *attending) resettable() []classes {
	busy := a.busy()
	switch {
	case len(busy) == 0:
		return slices.Clone(a.process.owed)
	case a.link.resetsAll, a.cleaning:
		return nil
	default:
		return slices.DeleteFunc(slices.Clone(a.process.owed), func(c classes) bool { return c.mayMeetAny(busy) })
	}
}

// resetsAtOnce is how many resets are asked for at once.
const resetsAtOnce = 4

// reset takes out what is owed of classes. What was done is no longer owed. What could not
// be stays in the classes, and the error says why.
func (a *attending) reset(ctx context.Context, of []classes) (stays []classes, err error) {
	asked := of
	if a.link.resetsAll && len(of) > 1 {
		asked = of[:1] // one is for all
	}
	failed := a.askResets(ctx, asked)
	for i, c := range of {
		why := failed[min(i, len(failed)-1)]
		if why != nil {
			stays = append(stays, c)
		}
		// A server that doesn't know it is not asked again.
		if why == nil || errors.Is(why, greys.ErrUnsupported) {
			a.process.owed = slices.DeleteFunc(a.process.owed, func(owed classes) bool { return owed == c })
		}
	}
	return stays, errors.Join(failed...)
}

// askResets asks for resets, counts them, and waits for them: each has an error or none.
func (a *attending) askResets(ctx context.Context, of []classes) (failed []error) {
	failed = make([]error, len(of))
	var resetting sync.WaitGroup
	places := make(chan struct{}, resetsAtOnce)
	for i, c := range of {
		places <- struct{}{}
		resetting.Go(func() {
			defer func() { <-places }()
			failed[i] = a.control(ctx, greys.ResetCommand{Class: c.pattern, Regexp: c.regexp}, func(greys.Reply) {})
		})
	}
	resetting.Wait()
	for _, err := range failed {
		outcome := resetDone
		if err != nil {
			outcome = resetFailed
		}
		a.server.env.telemetry.reset(outcome)
	}
	return failed
}

var errFarewell = errors.New("the time for it at a shutdown is over")

// leave ends all commands at a shutdown, and leaves the server as it was found.
func (a *attending) leave() {
	a.halt()
	a.resetAtLast(a.server.env.asking)
}

// resetAtLast asks for all resets that are owed, once, when no command runs any more.
func (a *attending) resetAtLast(ctx context.Context) {
	if stays, err := a.reset(ctx, a.resettable()); err != nil {
		a.server.stays(stays, err)
	}
}
