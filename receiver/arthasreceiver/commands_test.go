// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// awaitJobs waits until a number of commands run at the server.
func (b *bed) awaitJobs(n int) {
	b.T.Helper()
	b.Await("jobs", func() bool { _, jobs := b.server.Sessions(); return jobs == n })
}

func (b *bed) awaitStacks(n int) {
	b.T.Helper()
	b.Await("stacks", func() bool { return len(b.Records("arthas.stack")) == n })
}

func stacksOf(limit int) []CallsConfig { return []CallsConfig{{TargetConfig: shop, Limit: limit}} }

// The limit goes on after a lost session, and begins again in another process.
func TestALimitIsForTheLifeOfAProcess(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Stacks, c.StateInterval = stacksOf(3), 10*time.Millisecond
	})
	b.Start()
	b.awaitJobs(1)
	server.Call(buy(time.Millisecond))
	b.awaitStacks(1)
	server.Inject("close_session", arthasserver.FaultHTML)
	server.Inject("pull_results", arthasserver.FaultHTML)
	b.Await("a lost command", func() bool { return b.Points()["commands{outcome=lost}"] == 1 })
	b.awaitJobs(1)
	for range 5 {
		server.Call(buy(time.Millisecond))
	}
	b.awaitStacks(3)
	b.Await("a reset class", func() bool { return len(server.Instrumented()) == 0 })
	b.awaitJobs(0)
	// No command runs, so only the identity of the process shows that the program was started again.
	server.Restart()
	b.awaitJobs(1)
	server.Call(buy(time.Millisecond))
	b.awaitStacks(4)
	b.Shutdown()
	b.awaitRestored()
	assert.EqualValues(t, 1, b.Points()["commands{outcome=ended}"])
}

// The queue of a session is shorter than a limit, and the program can call faster than the receiver polls. A burst fills the
// limit of a job, and the rest of the limit is for later calls.
func TestABurstOfCallsLosesNoResultOfACommandWithALimit(t *testing.T) {
	const limit = 100
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) { c.Stacks = stacksOf(limit) })
	b.Start()
	b.awaitJobs(1)
	b.Await("all stacks", func() bool {
		for range limit {
			server.Call(buy(time.Millisecond))
		}
		return len(b.Records("arthas.stack")) >= limit
	})
	b.awaitJobs(0)
	b.Shutdown()
	b.awaitRestored()
	assert.Len(t, b.Records("arthas.stack"), limit)
	assert.Zero(t, b.Counter("results_lost"))
	assert.Zero(t, b.Counter("losses"))
	assert.Zero(t, server.Lives()[0].Dropped)
	assert.EqualValues(t, 1, b.Points()["commands{outcome=ended}"])
}

// Times have no zone. A command can run for longer than the program's difference to UTC stays the same.
func TestTimesAreRightAfterDaylightSavingTimeBegan(t *testing.T) {
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	server, endpoint := newServer(t, func(s *arthasserver.Settings) { s.Now = now })
	b := newBed(t, server, endpoint, func(c *Config) { c.Stacks = stacksOf(-1) })
	b.receiver.env.Now = now
	b.Start()
	b.awaitJobs(1)
	server.Call(buy(time.Millisecond))
	b.awaitStacks(1)
	later.Store(int64(time.Hour))
	server.SetZone(time.FixedZone("", int(time.Hour/time.Second)))
	server.Call(buy(time.Millisecond))
	b.awaitStacks(2)
	records := b.Records("arthas.stack")
	assert.WithinDuration(t, now().Add(-time.Hour), records[0].Timestamp().AsTime(), 10*time.Minute)
	assert.WithinDuration(t, now(), records[1].Timestamp().AsTime(), 10*time.Minute)
	b.Shutdown()
	b.awaitRestored()
}

// The program's own tracer has IDs for each second call.
func TestWatchedValuesHaveTheIDsOfTheProgramsTracer(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Watches = []WatchConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: 2}, TraceID: "#trace", SpanID: "#span"}}
	})
	b.Start()
	b.awaitJobs(1)
	server.Call(buy(time.Millisecond))
	server.Call(buy(time.Millisecond))
	records := b.AwaitRecords("arthas.watch", 2)
	assert.Equal(t, "00000000000000000000000000000001", records[0].TraceID().String())
	assert.Equal(t, "0000000000000001", records[0].SpanID().String())
	assert.True(t, records[1].TraceID().IsEmpty())
	assert.True(t, records[1].SpanID().IsEmpty())
	for _, r := range records {
		assert.Equal(t, "@ArrayList[\n]", r.Body().Str())
	}
	b.Shutdown()
	b.awaitRestored()
}

// A trace ends while the stack runs. A reset then would leave the class instrumented for all later resets.
func TestAClassIsResetWhenNoCommandHasItAnyMore(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Traces = []TraceConfig{{CallsConfig: CallsConfig{TargetConfig: on("demo.*", "*"), Limit: 1}}}
		c.Stacks = stacksOf(2)
		c.Watches = []WatchConfig{{CallsConfig: CallsConfig{TargetConfig: on("demo.Pay", "*"), Limit: 1}}}
	})
	b.Start()
	b.awaitJobs(3)
	server.Call(arthasserver.Call{Class: "demo.Pay", Method: "charge", Thread: "w", ThreadID: 1, Cost: time.Millisecond})
	b.awaitJobs(1)
	b.Await("a reset of demo.Pay", func() bool { return b.Points()["resets{outcome=done}"] == 1 })
	assert.Equal(t, []string{"demo.Shop"}, server.Instrumented())
	server.Call(buy(time.Millisecond))
	server.Call(buy(time.Millisecond))
	b.awaitJobs(0)
	b.Await("no instrumented class", func() bool { return len(server.Instrumented()) == 0 })
	b.Shutdown()
}

func TestAShutdownDuringAnyRequestRestoresTheProgram(t *testing.T) {
	for _, action := range []string{"exec", "init_session", "pull_results", "session_info", "async_exec"} {
		t.Run(action, func(t *testing.T) {
			server, endpoint := newServer(t, nil)
			b := newBed(t, server, endpoint, func(c *Config) {
				c.Stacks, c.Monitors = stacksOf(-1), []MonitorConfig{{TargetConfig: shop}}
			})
			b.Start()
			b.Await(action, func() bool { actions, _ := server.Requests(); return actions[action] > 0 })
			b.Shutdown()
			b.awaitRestored()
		})
	}
}

func TestACommandThatTheServerInterruptsStartsAgain(t *testing.T) {
	server, endpoint := newServer(t, func(s *arthasserver.Settings) { s.Patience = 50 * time.Millisecond })
	b := newBed(t, server, endpoint, func(c *Config) { c.Stacks, c.Servers[0].Timeout = stacksOf(-1), time.Second })
	b.Start()
	b.awaitJobs(1)
	// The answer is so slow that the queue is full without a poll.
	server.Inject("pull_results", arthasserver.FaultSlow)
	b.Await("an interrupted command", func() bool {
		server.Call(buy(time.Millisecond))
		return b.Points()["commands{outcome=lost}"] > 0
	})
	assert.Positive(t, b.Points()["losses{kind=broken_page}"])
	b.awaitJobs(1)
	b.Shutdown()
	b.awaitRestored()
}

func TestAConsumerThatTheServerRemovedIsReplaced(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) { c.Monitors = []MonitorConfig{{TargetConfig: shop, Cycle: time.Second}} })
	b.Start()
	b.awaitJobs(1)
	b.Await("a removed queue", func() bool {
		server.EvictConsumers(0, time.Hour)
		return b.Points()["losses{kind=eviction}"] > 0
	})
	b.Await("a row after it", func() bool {
		server.Call(buy(time.Millisecond))
		return len(b.points("java.method.calls")) > 0
	})
	b.Shutdown()
}

// More classes match than the server instruments.
func TestARefusedCommandIsALineAndARecord(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Stacks = []CallsConfig{{TargetConfig: on("demo.*", "*")}}
		c.Stacks[0].MaxClasses = 1
	})
	b.Start()
	record := b.AwaitRecords("arthas.command.refused", 1)[0]
	why, _ := record.Attributes().Get("arthas.error.message")
	assert.Contains(t, why.Str(), "the server could not carry it out")
	b.AwaitLine("The server could not carry out a command: the receiver sends it again")
	b.Await("another try", func() bool { return b.Points()["commands{outcome=refused}"] > 2 })
	b.Shutdown()
	assert.Len(t, b.Records("arthas.command.refused"), 1)
	b.awaitRestored()
}

// Another client can interrupt any command. Its end looks like that of a limit.
func TestAnUnlimitedCommandThatAnotherClientInterruptsStartsAgain(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) { c.Stacks = stacksOf(-1) })
	b.Start()
	b.awaitJobs(1)
	server.Inject("pull_results", arthasserver.FaultInterrupt)
	b.Await("a lost command", func() bool { return b.Points()["commands{outcome=lost}"] == 1 })
	b.awaitJobs(1)
	b.Shutdown()
	b.awaitRestored()
}

// Another client's recorded call stays, and so do those of a task that keeps them.
func TestRecordedCallsAreDeletedInTheProgram(t *testing.T) {
	for name, keep := range map[string]bool{"deleted": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			server, endpoint := newServer(t, nil)
			b := newBed(t, server, endpoint, func(c *Config) {
				c.Records = []RecordsConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: 4}, Keep: keep}}
			})
			recordOther(t, endpoint, server)
			b.Start()
			b.awaitJobs(1)
			for range 4 {
				server.Call(buy(time.Millisecond))
			}
			b.AwaitRecords("arthas.record", 4)
			left := 1
			if keep {
				left = 5
			} else {
				b.Await("the deletion", func() bool { return server.Recorded() == left })
			}
			b.Shutdown()
			assert.Equal(t, left, server.Recorded())
			assert.Zero(t, b.Counter("records_kept"))
			b.awaitRestored()
		})
	}
}

// recordOther records a call as another client.
func recordOther(t *testing.T, endpoint string, server *arthasserver.Server) {
	client, err := arthas.NewClient(newHTTPClient(), endpoint, arthas.Settings{})
	require.NoError(t, err)
	other, err := client.Open(t.Context())
	require.NoError(t, err)
	class, err := arthas.NewPattern("demo.Pay")
	require.NoError(t, err)
	method, err := arthas.NewPattern("*")
	require.NoError(t, err)
	_, err = other.Start(t.Context(), arthas.RecordCommand{Target: arthas.Target{Target: javamethods.Target{Class: class, Method: method}}})
	require.NoError(t, err)
	server.Call(arthasserver.Call{Class: "demo.Pay", Method: "charge", Thread: "w", ThreadID: 1, Cost: time.Millisecond})
	require.Equal(t, 1, server.Recorded())
	require.NoError(t, other.Close(t.Context()))
	_, err = client.Exec(t.Context(), arthas.ResetCommand{Class: class}, time.Second)
	require.NoError(t, err)
}
