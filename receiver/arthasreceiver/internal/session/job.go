// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/task"
)

// job is a task in the life of one process. Its own goroutine owns it.
type job struct {
	server *Server
	task   *task.Task
	// received counts the results of all its commands.
	received int64
	// over means that the limit is reached.
	over bool
	// begun means that a command ran before.
	begun bool
}

// rest returns the rest of the limit, or [task.Unlimited].
func (j *job) rest() int64 {
	if j.task.Limit == task.Unlimited {
		return task.Unlimited
	}
	return max(1, j.task.Limit-j.received)
}

// run runs commands until the limit is reached, or ctx ends. lose ends the other jobs if the server is lost.
func (j *job) run(ctx context.Context, lose context.CancelCauseFunc) {
	pauses := backoff.New(j.server.Reconnect)
	for !j.over {
		began := j.server.Now()
		end, err := j.command(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case isLost(err) || errors.Is(err, errBroken):
			lose(err)
			return
		case err != nil:
			j.server.Output.Problem(j.task, false, err)
		default:
			if err := j.ended(end); err != nil {
				lose(err)
				return
			}
		}
		if j.server.Now().Sub(began) > j.server.Reconnect.MaxInterval {
			pauses.Reset()
		}
		if !j.over && !sleep(ctx, pauses.Pause()) {
			return
		}
	}
}

// ended decides what the end of a command means. An error means that the server is lost.
func (j *job) ended(end arthas.End) error {
	out := j.server.Output
	switch end.Reason {
	case arthas.EndServerStopped, arthas.EndSessionLost:
		return fmt.Errorf("%v: %s", end.Reason, end.Message)
	case arthas.EndFailed:
		const noClass = -1
		out.Problem(j.task, end.Code == noClass, &arthas.CommandError{Code: end.Code, Message: end.Message})
	case arthas.EndFinished:
		// The server counted the results that got lost, too.
		j.over = j.task.Limit != task.Unlimited
	case arthas.EndUnhealthy:
		out.Count(CountUnhealthy, 1)
		j.over = j.task.Limit != task.Unlimited && j.received >= j.task.Limit
	}
	return nil
}

// command runs one command in a session of its own, until it ends or ctx ends. These are its steps:
//
//  1. It opens a session, stores its ID, and starts the command.
//  2. It polls results. At the end of ctx it interrupts the command: an open poll then returns soon.
//  3. It closes the session, and restores the classes.
//
// They go on after the end of ctx, until the time for leaving is over.
func (j *job) command(ctx context.Context) (end arthas.End, err error) {
	s := j.server
	// A request that the end of ctx cuts off would leave a session whose ID is not known.
	session, err := s.Client.Open(s.Leaving)
	if err != nil {
		return end, err
	}
	if ctx.Err() != nil {
		return end, session.Close(s.Leaving)
	}
	var interrupts sync.WaitGroup
	defer interrupts.Wait()
	interrupts.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer interrupts.Done()
		_ = session.Interrupt(s.Leaving) // the session is closed afterwards, which ends the job too
	})
	leaving := func() {
		if stop() {
			interrupts.Done()
		}
		closed := false
		if !isLost(err) {
			closed = session.Close(s.Leaving) == nil
		}
		s.ended(s.Leaving, j, session, closed)
	}
	running, err := s.start(s.Leaving, j, session, j.task.Command(j.rest()))
	defer leaving()
	if err != nil {
		return end, err
	}
	if j.begun {
		s.Output.Count(CountRestarted, 1)
	}
	j.begun = true
	if ctx.Err() != nil { // the interrupt may have been sent before the command
		_ = session.Interrupt(s.Leaving)
	}
	end, err = j.poll(ctx, session, running)
	return end, err
}

// poll accepts the results of a command until it ends. After the end of ctx it accepts those that wait.
func (j *job) poll(ctx context.Context, session *arthas.Session, running *arthas.Job) (arthas.End, error) {
	s := j.server
	received := Received{}
	if server := session.Server(); server.HasOffset {
		received.Zone = time.FixedZone("", int(server.Offset/time.Second))
	}
	var loss arthas.Loss
	for broken := 0; ; {
		page, err := running.Pull(s.Leaving)
		now := session.Loss()
		s.countLoss(&loss, &now)
		received.At = s.Now()
		s.Output.Count(CountUnbegun, page.Unbegun)
		for _, result := range page.Results {
			j.accept(result, received)
		}
		switch {
		case page.End != nil:
			return *page.End, nil
		case err == nil:
			broken = 0
		case ctx.Err() != nil || isLost(err):
			return arthas.End{}, err
		case errors.Is(err, arthas.ErrConsumerNotFound):
			if err := session.Rejoin(s.Leaving); err != nil {
				return arthas.End{}, err
			}
		default:
			if broken++; broken >= maxBroken {
				return arthas.End{}, fmt.Errorf("%w: %w", errBroken, err)
			}
		}
		if len(page.Results) < fullPage && ctx.Err() == nil {
			sleep(ctx, j.pause(&page))
		}
	}
}

// fullPage is the number of results of a page that shows that more wait.
const fullPage = 20

// pause returns the pause before the next poll. A monitor has no results before the end of its cycle.
func (j *job) pause(page *arthas.Page) time.Duration {
	if j.task.Kind != task.Monitor {
		return j.server.PollInterval
	}
	return j.task.Cycle - page.Elapsed%j.task.Cycle
}

// accept forwards a result, and counts it.
func (j *job) accept(result arthas.Result, received Received) {
	out := j.server.Output
	switch result.(type) {
	case *arthas.Malformed:
		out.Count(CountMalformed, 1)
		return
	case *arthas.Monitor, *arthas.Trace, *arthas.CallStack, *arthas.Watch, *arthas.Records:
		j.received++
		out.Count(CountResults, 1)
	}
	out.Result(j.task, result, received)
}

// countLoss counts what got lost since the last count.
func (s *Server) countLoss(before, now *arthas.Loss) {
	s.Output.Count(CountLost, now.Results-before.Results)
	s.Output.Count(CountOverflows, now.Overflows-before.Overflows)
	s.Output.Count(CountFullQueues, now.FullQueues-before.FullQueues)
	s.Output.Count(CountBrokenPages, now.BrokenPages-before.BrokenPages)
	s.Output.Count(CountEvictions, now.Evictions-before.Evictions)
	s.Output.Count(CountGaps, now.Gaps-before.Gaps)
	*before = *now
}
