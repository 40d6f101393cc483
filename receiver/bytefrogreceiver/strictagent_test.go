// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// restless is a program that calls one method until its tracing is over, in as many
// threads as it has.
type restless struct{ threads int }

func (p restless) Run(t *bytefrogagent.Tracer) error {
	var mu sync.Mutex
	var next uint32
	var wg sync.WaitGroup
	errs := make([]error, p.threads)
	for thread := range p.threads {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for errs[thread] == nil {
				errs[thread] = p.fill(t, uint16(thread), &mu, &next)
			}
		}()
	}
	wg.Wait()
	return errs[0]
}

// fill sends a buffer of calls.
func (p restless) fill(t *bytefrogagent.Tracer, thread uint16, mu *sync.Mutex, next *uint32) error {
	buffer, err := t.Acquire()
	if err != nil {
		return err
	}
	mu.Lock()
	if *next == 0 {
		buffer.Data = append(buffer.Data, namesOne()...)
	}
	for buffer.Room() > 2*bytefrog.MaxEventSize {
		buffer.Data = append(buffer.Data, calls(*next, 1)...)
		*next += 2
	}
	mu.Unlock()
	t.Send(buffer)
	return t.Proceed()
}

// quickHeart makes agents send heartbeats often.
func quickHeart(_ *bed, c *Config) { c.Agent.HeartbeatInterval = 50 * time.Millisecond }

// runRestless runs an agent with a restless program, and returns its result. On its busy machine, all
// events of one second happen together.
func runRestless(ctx context.Context, b *bed, change ...func(o *bytefrogagent.Options)) <-chan bytefrogagent.Result {
	_, results := playRestless(ctx, b, change...)
	return results
}

func playRestless(ctx context.Context, b *bed, change ...func(o *bytefrogagent.Options)) (*bytefrogagent.Agent, <-chan bytefrogagent.Result) {
	results := make(chan bytefrogagent.Result, 1)
	options := bytefrogagent.Options{Settle: time.Second, Dial: func(ctx context.Context) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.address())
		if err == nil {
			err = conn.(*net.TCPConn).SetWriteBuffer(64 << 10) // it is full soon
		}
		return conn, err
	}}
	for _, c := range change {
		c(&options)
	}
	a := bytefrogagent.New(options, restless{threads: 2})
	go func() { results <- a.Run(ctx) }()
	return a, results
}

// No end of a run may hang the traced program: the agent here is as strict as the
// real one.
func TestNoEndOfARunHangsTheTracedProgram(t *testing.T) {
	t.Parallel()
	soon := func(_ *bed, c *Config) { c.ShutdownTimeout = 500 * time.Millisecond }
	// Agents of a busy machine are not given up before the test freezes them, and have time to close their connections.
	givesUp := func(_ *bed, c *Config) { c.MissedHeartbeats = 40 }
	// No connection waits for another one, so all wait for the pipeline.
	noLead := func(_ *bed, c *Config) { c.Limits.MaxConnectionLead = maxConnectionLead }
	neverCuts := func(b *bed, _ *Config) {
		timing := defaultTiming()
		timing.parting = never
		b.timing = &timing
	}
	// full waits until the agent and the sockets hold all they can.
	full := func(b *bed) {
		run := b.receiver.env.registry.lookup(1)
		most := int64(b.receiver.env.config.Agent.BufferMemory / bytefrogagent.DefaultBufferSize)
		b.Await("full buffers", func() bool { return run.State().SendBuffers == most-2 })
	}
	cases := map[string]struct {
		options []option
		end     func(t *testing.T, b *bed, a *bytefrogagent.Agent)
	}{
		"shutdown under full load": {nil, func(t *testing.T, b *bed, _ *bytefrogagent.Agent) {
			require.NoError(t, b.Component().Shutdown(context.Background()))
		}},
		"shutdown while the pipeline refuses": {[]option{soon}, func(t *testing.T, b *bed, _ *bytefrogagent.Agent) {
			b.Traces.RefuseWith(receivertestbed.ErrRefused)
			full(b)
			require.NoError(t, b.Component().Shutdown(context.Background()))
		}},
		"shutdown while the pipeline doesn't answer": {[]option{soon}, func(t *testing.T, b *bed, _ *bytefrogagent.Agent) {
			release := b.Traces.Hang(true)
			full(b)
			done := b.shutdownInBackground()
			b.Await("all connections to be closed", func() bool { return b.openConnections() == 0 })
			release()
			require.NoError(t, <-done)
		}},
		"shutdown while suspended for overload": {[]option{suspendsOnOverload, soon}, func(t *testing.T, b *bed, _ *bytefrogagent.Agent) {
			b.Traces.RefuseWith(receivertestbed.ErrRefused)
			b.Await("suspend", func() bool { return b.Counter("suspends") == 1 })
			require.NoError(t, b.Component().Shutdown(context.Background()))
		}},
		"given up": {nil, func(_ *testing.T, b *bed, _ *bytefrogagent.Agent) {
			b.receiver.env.registry.lookup(1).Leave(session.Unresponsive(time.Second))
		}},
		"given up while frozen": {[]option{givesUp}, func(_ *testing.T, b *bed, a *bytefrogagent.Agent) {
			a.Freeze()
			b.awaitRuns(0)
			a.Thaw()
		}},
		"given up while frozen and the pipeline refuses": {[]option{givesUp, noLead}, func(_ *testing.T, b *bed, a *bytefrogagent.Agent) {
			b.Traces.RefuseWith(receivertestbed.ErrRefused)
			run := b.receiver.env.registry.lookup(1)
			b.Await("the connections to wait", func() bool { return run.State().Waiting == 2 })
			a.Freeze()
			b.Await("the run to be given up", func() bool { return run.State().Leaving })
			a.Thaw()
			b.Await("the agent to close", func() bool { return b.openConnections() == 0 })
			b.Traces.RefuseWith(nil)
		}},
		"out of memory while the pipeline refuses": {[]option{noLead}, func(_ *testing.T, b *bed, _ *bytefrogagent.Agent) {
			b.Traces.RefuseWith(receivertestbed.ErrRefused)
			run := b.receiver.env.registry.lookup(1)
			b.Await("the connections to wait", func() bool { return run.State().Waiting == 2 })
			run.Leave(session.OutOfMemory(&limitError{setting: settingMaxRunMemory, limit: 1}))
			b.Traces.RefuseWith(nil)
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, append([]option{quickRetries, quickHeart, neverCuts}, c.options...)...)
			ctx, cancel := context.WithTimeout(context.Background(), 3*receivertestbed.Patience)
			defer cancel()
			a, result := playRestless(ctx, b)
			b.Await("events", func() bool { return b.Counter("events") > 50_000 })
			c.end(t, b, a)
			r := <-result
			assert.Contains(t, []bytefrogagent.Outcome{bytefrogagent.Untraced, bytefrogagent.Completed}, r.Outcome, "%v: %s (%v)", r.Outcome, r.Reason, r.Err)
			b.awaitRuns(0)
			assert.Zero(t, b.Counter("lingering_cut"), "the agent has closed its connections itself")
		})
	}
}
