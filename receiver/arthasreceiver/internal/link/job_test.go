// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/arthas"
)

// The program pays for each poll. So idle commands share their polls, and a command with results is polled soon.
func TestPausesGrowWhileACommandHasNoResults(t *testing.T) {
	t.Parallel()
	const poll, idle = 500 * time.Millisecond, 5 * time.Second
	empty, some := &arthas.Page{}, &arthas.Page{Results: []arthas.Result{&arthas.Watch{}}}
	newJob := func(commands int) *job {
		l := &link{Dialer: &Dialer{Settings: Settings{PollInterval: poll, IdlePollInterval: idle}}, running: map[string]bool{}, busy: make(chan struct{})}
		for i := range commands {
			l.setRunning(string(rune('a'+i)), true)
		}
		return &job{link: l}
	}
	pauses := func(j *job, polls int) (all []time.Duration) {
		for range polls {
			all = append(all, j.pause(empty))
		}
		return all
	}
	const s = time.Second
	j := newJob(1)
	assert.Equal(t, []time.Duration{poll, s, 2 * s, 4 * s, idle, idle}, pauses(j, 6), "one command")
	assert.Equal(t, poll, j.pause(some))
	assert.Equal(t, []time.Duration{s, 2 * s}, pauses(j, 2), "after a result")
	assert.Equal(t, []time.Duration{poll, s, 2 * s, 4 * s, 8 * s, 16 * s, 25 * s, 25 * s}, pauses(newJob(5), 8), "five commands share the polls")
	assert.Equal(t, maxIdlePause, pauses(newJob(16), 10)[9])
	j = newJob(1)
	j.IdlePollInterval = poll / 10
	assert.Equal(t, []time.Duration{poll, poll, poll}, pauses(j, 3), "never shorter than poll_interval")
	j = newJob(5)
	j.command.Cycle = 10 * s
	assert.Equal(t, 3*s, j.pause(&arthas.Page{Elapsed: 27 * s}), "a monitor is polled at the end of its cycle")
}

// A program that works again is seen as soon as one of its commands is polled.
func TestAResultAfterARestEndsThePausesOfOtherCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const poll, idle = time.Second, time.Minute
		l := &link{Dialer: &Dialer{Settings: Settings{PollInterval: poll, IdlePollInterval: idle}}, running: map[string]bool{"a": true}, busy: make(chan struct{})}
		rest := func(j *job, results ...arthas.Result) time.Duration {
			began := time.Now()
			j.rest(context.Background(), &arthas.Page{Results: results})
			return time.Since(began)
		}
		resting := func(j *job) <-chan time.Duration {
			j.idlePause = idle
			took := make(chan time.Duration, 1)
			go func() { took <- rest(j) }()
			synctest.Wait()
			return took
		}
		other, monitor, j := resting(&job{link: l}), resting(&job{link: l, command: Command{Cycle: 10 * time.Second}}), &job{link: l}
		rest(j)
		rest(j)
		time.Sleep(3 * time.Second)
		rest(j, &arthas.Watch{})
		assert.Equal(t, 6*time.Second, <-other)
		assert.Equal(t, 10*time.Second, <-monitor)
		other = resting(&job{link: l})
		rest(j, &arthas.Watch{})
		assert.Equal(t, idle, <-other, "the command was not idle")
	})
}
