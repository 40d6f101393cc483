// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/remembered"
)

// job is one command in its session. The goroutine of [link.Run] owns it.
type job struct {
	*link
	command Command
	session *arthas.Session
	each    func(javamethods.Reply)
	// life is the life of the program in which it runs.
	life int
	// zone is the time zone of the process, or nil. zoneAsked is the time when it was requested.
	zone      *time.Location
	zoneAsked time.Time
	// refusal is the server's reason why it instrumented no class, or nil.
	refusal error
	// loss has the losses that are counted.
	loss arthas.Loss
	// idlePause is the last pause. It grows while there are no results.
	idlePause time.Duration
	// pulling ends with the link, and at a shutdown earlier: then the session is closed without its last results.
	pulling context.Context
}

// runJob runs a command in a session of its own, until it ends or ctx ends. These are its steps:
//
//  1. It ends sessions that are left of earlier commands. It opens a session, and stores its ID.
//  2. It starts the command, and polls its results. At the end of ctx it interrupts the command: an open poll then returns
//     soon. A command with a limit is a job for each part of the limit.
//  3. It closes the session. If that fails, the session stays stored.
//
// They go on after the end of ctx, until the link ends.
func (l *link) runJob(ctx context.Context, command Command, each func(javamethods.Reply)) (err error) {
	if err := l.endLeftovers(l.ctx); err != nil {
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	// A request that the end of ctx cuts off would leave a session whose ID is not known.
	s, err := l.client.Open(l.ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	j := &job{link: l, command: command, session: s, each: each, life: l.currentLife()}
	j.readZone(s.Server())
	l.setRunning(s.ID(), true)
	l.Store.Opened(ctx, s.ID(), remembered.Of(command.Classes))
	defer func() {
		defer l.setRunning(s.ID(), false)
		s.Forget()
		if s.Close(l.ctx) == nil {
			l.Store.Closed(ctx, s.ID())
		}
	}()
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errUnsent, context.Cause(ctx))
	}
	var endPulls context.CancelFunc
	j.pulling, endPulls = l.within(l.Pulling)
	defer endPulls()
	defer j.interruptAtEnd(ctx)()
	if command.Limit == 0 {
		end, err := j.runPart(ctx, arthas.MaxLimit)
		if err != nil {
			return err
		}
		return j.reason(end)
	}
	for rest := command.Limit; rest > 0; rest -= partResults {
		if rest < command.Limit {
			sleep(ctx, l.PollInterval, nil)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		end, err := j.runPart(ctx, min(rest, partResults))
		if err != nil {
			return err
		}
		if end.Reason != arthas.EndFinished {
			return j.reason(end)
		}
	}
	return javamethods.ErrLimit
}

// partResults is the maximum number of results of a job with a limit. The queue of a session has 50, and 5 of them can be
// notices about the job. So a job of a part that ended while nothing polled has lost no result.
const partResults = 45

// runPart runs the command with a limit until its end.
func (j *job) runPart(ctx context.Context, limit arthas.Limit) (arthas.End, error) {
	running, err := j.session.Start(j.ctx, j.command.Within(limit))
	if err != nil {
		return arthas.End{}, j.notStarted(err)
	}
	if ctx.Err() != nil { // the interrupt may have been sent before the command
		_ = j.session.Interrupt(j.pulling)
	}
	end, err := j.poll(ctx, running)
	if err != nil {
		j.acceptPage(running.Rest())
	}
	return end, err
}

// notStarted returns the error of a command that did not start.
func (j *job) notStarted(err error) error {
	if refused := (*arthas.RefusedError)(nil); errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", javamethods.ErrRefused, err)
	}
	return err
}

// interruptAtEnd interrupts the command at the end of ctx. The result waits for a running request.
func (j *job) interruptAtEnd(ctx context.Context) (wait func()) {
	var interrupting sync.WaitGroup
	interrupting.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer interrupting.Done()
		_ = j.session.Interrupt(j.pulling) // the session is closed afterwards, which ends the job too
	})
	return func() {
		if stop() {
			interrupting.Done()
		}
		interrupting.Wait()
	}
}

// maxBroken is the number of failed polls in succession after which the command is given up.
const maxBroken = 5

// fullPage is the number of results of a page that shows that more wait.
const fullPage = 20

// poll accepts the results of a command until it ends. After the end of ctx it accepts those that wait.
func (j *job) poll(ctx context.Context, running *arthas.Job) (arthas.End, error) {
	for broken := 0; ; {
		page, err := running.Pull(j.pulling)
		j.acceptPage(page)
		switch {
		case page.End != nil:
			return *page.End, nil
		case err == nil:
			broken = 0
			j.pollAnswered(j.Now())
		case ctx.Err() != nil || isLost(err) || j.pulling.Err() != nil:
			return arthas.End{}, err
		case errors.Is(err, arthas.ErrConsumerNotFound):
			if err := j.session.Rejoin(j.pulling); err != nil {
				return arthas.End{}, err
			}
			j.idlePause = 0
		default:
			j.idlePause = 0
			if broken++; broken >= maxBroken {
				return arthas.End{}, fmt.Errorf("%d answers in succession could not be read: %w", broken, err)
			}
		}
		if len(page.Results) < fullPage {
			j.rest(ctx, &page)
		}
	}
}

// rest waits before the next poll. It ends earlier when another command has results after a rest: what the program does
// now may concern this command too.
func (j *job) rest(ctx context.Context, page *arthas.Page) {
	busy := j.busyAgain()
	if j.command.Cycle != 0 {
		busy = nil // its results come at the end of a cycle
	}
	sleep(ctx, j.pause(page), busy)
}

// maxIdlePause limits the pause of an idle command: after 5 minutes without a poll the server removes the queue.
const maxIdlePause = time.Minute

// pause returns the pause before the next poll. A monitor has no results before the end of its cycle. Each poll costs the
// program about 5 ms of a processor, because its code is rarely used and so not compiled, and a poll without results blocks a thread
// for 2 s. So the pause of another command doubles with each poll without results, up to a share of the idle polls.
func (j *job) pause(page *arthas.Page) time.Duration {
	if j.command.Cycle != 0 {
		return j.command.Cycle - page.Elapsed%j.command.Cycle
	}
	if len(page.Results) > 0 || j.idlePause == 0 {
		if j.idlePause > j.PollInterval {
			j.wakeOthers()
		}
		j.idlePause = j.PollInterval
		return j.PollInterval
	}
	most := min(j.IdlePollInterval*time.Duration(j.runningCommands()), maxIdlePause)
	j.idlePause = max(j.PollInterval, min(2*j.idlePause, most))
	return j.idlePause
}

// sleep waits until ctx ends, or woken is closed, or for a time.
func sleep(ctx context.Context, d time.Duration, woken <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-timer.C:
	}
}

// acceptPage forwards the results of a page, and counts what got lost.
func (j *job) acceptPage(page arthas.Page) {
	now := j.Now()
	j.countLoss()
	j.Count(CountUnbegun, page.Unbegun)
	for _, result := range page.Results {
		j.accept(result, now)
	}
}

// accept forwards a result, and counts it.
func (j *job) accept(result arthas.Result, at time.Time) {
	if bad, is := result.(*arthas.Malformed); is {
		j.mu.Lock()
		j.stats.Bad++
		j.stats.LastBad = fmt.Errorf("%s: %w", bad.Type, bad.Err)
		j.mu.Unlock()
		return
	}
	replies := j.replies(result, at)
	if _, is := result.(*arthas.Enhanced); !is && len(replies) > 0 {
		j.Count(CountResults, 1)
	}
	for _, reply := range replies {
		j.each(reply)
	}
	if records, is := result.(*arthas.Records); is && j.command.Forgets {
		j.forget(records.Calls, j.life)
	}
}

// reason returns the error that the end of a command means.
func (j *job) reason(end arthas.End) error {
	switch {
	case end.Reason == arthas.EndFailed && j.refusal != nil:
		return j.refusal
	case end.Reason == arthas.EndFailed:
		return fmt.Errorf("%w: %w", javamethods.ErrRefused, &arthas.CommandError{Code: end.Code, Message: end.Message})
	case end.Reason == arthas.EndUnhealthy:
		j.Count(CountUnhealthy, 1)
	}
	return fmt.Errorf("the command ended early (%v): %s", end.Reason, end.Message)
}

// countLoss counts what got lost since the last count.
func (j *job) countLoss() {
	now := j.session.Loss()
	before := &j.loss
	j.Count(CountLost, now.Results-before.Results)
	j.Count(CountOverflows, now.Overflows-before.Overflows)
	j.Count(CountFullQueues, now.FullQueues-before.FullQueues)
	j.Count(CountBrokenPages, now.BrokenPages-before.BrokenPages)
	j.Count(CountEvictions, now.Evictions-before.Evictions)
	j.Count(CountGaps, now.Gaps-before.Gaps)
	*before = now
}
