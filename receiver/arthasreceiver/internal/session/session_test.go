// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/remembered"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output records everything that a server reports.
type output struct {
	mu       sync.Mutex
	began    []bool
	results  map[task.Kind]int
	problems []bool
	counts   [session.Counts]int64
}

func (o *output) locked(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

func (o *output) Began(_ session.Process, isNew bool) {
	o.locked(func() { o.began = append(o.began, isNew) })
}
func (o *output) Lost(error) {}
func (o *output) Result(t *task.Task, r arthas.Result, _ session.Received) {
	if _, is := r.(*arthas.Enhanced); !is {
		o.locked(func() { o.results[t.Kind]++ })
	}
}
func (o *output) JVM(*arthas.Dashboard, *arthas.JVM) {}
func (o *output) Problem(_ *task.Task, unmatched bool, _ error) {
	o.locked(func() { o.problems = append(o.problems, unmatched) })
}
func (o *output) Released(*task.Task)               {}
func (o *output) Count(what session.Count, n int64) { o.locked(func() { o.counts[what] += n }) }

func (o *output) count(what session.Count) (n int64) {
	o.locked(func() { n = o.counts[what] })
	return n
}

func (o *output) received(kind task.Kind) (n int) {
	o.locked(func() { n = o.results[kind] })
	return n
}

// bed is a server that runs its tasks.
type bed struct {
	t    *testing.T
	sim  *arthasserver.Server
	out  *output
	stop func()
}

// run runs the tasks on a simulated server until the test ends. timeout is that of requests; 0 means the default.
func run(t *testing.T, timeout time.Duration, tasks ...*task.Task) *bed {
	b := &bed{t: t, out: &output{results: map[task.Kind]int{}}, sim: arthasserver.New(arthasserver.Settings{
		Classes:  map[string][]string{"demo.Shop": {"buy"}, "demo.Pay": {"charge"}},
		PullWait: 50 * time.Millisecond, Gather: 5 * time.Millisecond, Patience: 50 * time.Millisecond,
	})}
	listening := httptest.NewServer(b.sim)
	t.Cleanup(listening.Close)
	t.Cleanup(b.sim.Close)
	client, err := arthas.NewClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, listening.URL, arthas.Settings{Timeout: timeout})
	require.NoError(t, err)
	store, err := remembered.New(t.Context(), nil, "", nil)
	require.NoError(t, err)
	leaving, left := context.WithCancel(context.Background())
	serving, end := context.WithCancel(leaving)
	server := session.New(session.Settings{
		Client: client, Tasks: tasks, PollInterval: time.Millisecond, StateInterval: 10 * time.Millisecond, Store: store, Leaving: leaving, Output: b.out,
		Reconnect: backoff.Config{InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond},
		Logger:    zap.NewNop(), Now: time.Now,
	})
	var running sync.WaitGroup
	running.Go(func() { server.Run(serving) })
	b.stop = func() {
		end()
		running.Wait()
		left()
	}
	t.Cleanup(b.stop)
	return b
}

func (b *bed) await(what string, condition func() bool) {
	b.t.Helper()
	require.Eventually(b.t, condition, time.Minute, time.Millisecond, what)
}

func (b *bed) awaitJobs(n int) {
	b.t.Helper()
	b.await("jobs", func() bool { _, jobs := b.sim.Sessions(); return jobs == n })
}

func newTask(t *testing.T, number int, kind task.Kind, class string, limit int64) *task.Task {
	pattern, err := arthas.NewPattern(class)
	require.NoError(t, err)
	method, err := arthas.NewPattern("*")
	require.NoError(t, err)
	return &task.Task{
		Number: number, Kind: kind, Pattern: class, Limit: limit, Cycle: time.Second,
		Target: arthas.Target{Target: javamethods.Target{Class: pattern, Method: method}},
	}
}

var buy = arthasserver.Call{Class: "demo.Shop", Method: "buy", Thread: "w", ThreadID: 1, Cost: time.Millisecond}

func TestALimitIsForTheLifeOfAProcess(t *testing.T) {
	b := run(t, 0, newTask(t, 1, task.Stack, "demo.Shop", 3))
	b.awaitJobs(1)
	b.sim.Call(buy)
	b.await("one stack", func() bool { return b.out.received(task.Stack) == 1 })
	b.sim.Inject("pull_results", arthasserver.FaultHTML) // the server is lost, and the command starts again
	b.await("the end of the old session", func() bool { return b.out.count(session.CountLeftovers) == 1 })
	b.awaitJobs(1)
	for range 5 {
		b.sim.Call(buy)
	}
	b.await("three stacks", func() bool { return b.out.received(task.Stack) == 3 })
	b.await("a reset class", func() bool { return len(b.sim.Instrumented()) == 0 })
	b.awaitJobs(0)
	assert.Equal(t, 3, b.out.received(task.Stack))
	// No command runs, so only the identity of the process shows that the program was started again.
	b.sim.Restart()
	b.awaitJobs(1)
	b.sim.Call(buy)
	b.await("a stack of the new process", func() bool { return b.out.received(task.Stack) == 4 })
}

// The trace ends while the stack runs. A reset then would leave the class instrumented for all later resets.
func TestAClassIsResetWhenNoCommandHasItAnyMore(t *testing.T) {
	b := run(t, 0, newTask(t, 1, task.Trace, "demo.*", 1), newTask(t, 2, task.Stack, "demo.Shop", 2), newTask(t, 3, task.Watch, "demo.Pay", 1))
	b.awaitJobs(3)
	b.sim.Call(arthasserver.Call{Class: "demo.Pay", Method: "charge", Thread: "w", ThreadID: 1, Cost: time.Millisecond})
	b.awaitJobs(1)
	b.await("a reset of demo.Pay", func() bool {
		return slices.Equal(b.sim.Instrumented(), []string{"demo.Shop"}) || b.out.count(session.CountResets) > 0
	})
	assert.Contains(t, b.sim.Instrumented(), "demo.Shop")
	b.sim.Call(buy)
	b.sim.Call(buy)
	b.awaitJobs(0)
	b.await("no instrumented class", func() bool { return len(b.sim.Instrumented()) == 0 })
}

func TestAShutdownDuringAnyRequestRestoresTheProgram(t *testing.T) {
	for _, action := range []string{"exec", "init_session", "pull_results", "session_info", "async_exec"} {
		t.Run(action, func(t *testing.T) {
			b := run(t, 0, newTask(t, 1, task.Stack, "demo.Shop", task.Unlimited), newTask(t, 2, task.Monitor, "demo.Shop", task.Unlimited))
			b.await(action, func() bool { actions, _ := b.sim.Requests(); return actions[action] > 0 })
			b.stop()
			assert.Empty(t, b.sim.Instrumented())
			assert.Zero(t, b.sim.Lives()[0].Sessions)
		})
	}
}

func TestACommandThatTheServerInterruptsStartsAgain(t *testing.T) {
	b := run(t, 100*time.Millisecond, newTask(t, 1, task.Stack, "demo.Shop", task.Unlimited))
	b.awaitJobs(1)
	// The answer is so slow that the queue is full without a poll.
	b.sim.Inject("pull_results", arthasserver.FaultSlow)
	b.await("an interrupted command", func() bool {
		b.sim.Call(buy)
		return b.out.count(session.CountRestarted) > 0
	})
	assert.Positive(t, b.out.count(session.CountBrokenPages))
	b.awaitJobs(1)
}

func TestAConsumerThatTheServerRemovedIsReplaced(t *testing.T) {
	b := run(t, 0, newTask(t, 1, task.Monitor, "demo.Shop", task.Unlimited))
	b.awaitJobs(1)
	b.await("a removed queue", func() bool {
		b.sim.EvictConsumers(0, time.Hour)
		return b.out.count(session.CountEvictions) > 0
	})
	b.await("a row after it", func() bool {
		b.sim.Call(buy)
		return b.out.received(task.Monitor) > 0
	})
}
