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
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/callevent"
)

// ends says when the other side closed each of the agent's connections.
func (a *agent) ends() (data, control <-chan time.Time) {
	d, c := make(chan time.Time, 1), make(chan time.Time, 1)
	go func() {
		var reading sync.WaitGroup
		for _, p := range a.data {
			reading.Add(1)
			go func() { defer reading.Done(); drainPeer(p) }()
		}
		reading.Wait()
		d <- time.Now()
	}()
	go func() { drainPeer(a.control); c <- time.Now() }()
	return d, c
}

func (b *bed) shutdownInBackground() <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.receiver.Shutdown(context.Background()) }()
	return done
}

// shutdownWith sets how long a shutdown hands on, and how long agents have to close
// their connections.
func shutdownWith(timeout, parting time.Duration) option {
	return func(b *bed, c *Config) {
		timing := defaultTiming()
		timing.parting = parting
		b.timing, c.ShutdownTimeout = &timing, timeout
	}
}

func TestAShutdownReadsAllThenSaysErrorThenWaitsForTheAgent(t *testing.T) {
	b := newBed(t, shutdownWith(5*time.Second, patience))
	a := connect(b, 1)
	p := a.join()
	a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	done := b.shutdownInBackground()
	a.control.expectCommand(bytefrog.TypeSuspend)
	// What was on its way still comes, before and after the break is heard of.
	p.write(calls(100, 50))
	a.control.send(bytefrog.DataBreak{Sequence: 300})
	p.write(calls(200, 50))
	assert.Equal(t, "the receiver is shutting down", a.control.expectError())
	a.expectToLinger(b, 3)
	require.NoError(t, <-done)
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 300)
	assert.Equal(t, callevent.End(300, callevent.CauseShutdown), s.end(t))
	assert.Equal(t, []callevent.Barrier{callevent.Point(300, callevent.CauseShutdown)}, s.breaks(), "the break that leaving asks for")
}

func TestAnAgentThatDoesNotCloseIsClosedDataFirst(t *testing.T) {
	b := newBed(t, shutdownWith(5*time.Second, 10*time.Millisecond))
	a := connect(b, 1)
	a.join()
	a.join()
	done := b.shutdownInBackground()
	a.answerSuspend(0)
	a.control.expectError()
	data, control := a.ends()
	dataAt, controlAt := <-data, <-control
	require.NoError(t, <-done)
	assert.GreaterOrEqual(t, controlAt.Sub(dataAt), 250*time.Millisecond, "the control connection outlives the data connections")
	assert.EqualValues(t, 3, b.metric("receiver_bytefrog_lingering_cut"))
}

// Such an agent may be stopped: it has all the time there is.
func TestAnAgentThatDoesNotAnswerHasUntilTheShutdownsTimeIsOver(t *testing.T) {
	const timeout = 2500 * time.Millisecond // More than it takes to find out.
	b := newBed(t, shutdownWith(timeout, 10*time.Millisecond))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	began := time.Now()
	done := b.shutdownInBackground()
	a.control.expectCommand(bytefrog.TypeSuspend)
	a.control.expectError()
	data, control := a.ends()
	dataAt, controlAt := <-data, <-control
	require.NoError(t, <-done)
	assert.GreaterOrEqual(t, dataAt.Sub(began), timeout)
	assert.GreaterOrEqual(t, controlAt.Sub(dataAt), 250*time.Millisecond)
	assert.Len(t, b.pipeline.only(t).events, 100)
}

// While the pipeline refuses, the agent must not be left with something unsent.
func TestWhatAnAgentHasSentIsReadThoughTheShutdownsTimeIsOver(t *testing.T) {
	b := newBed(t, quickRetries, shutdownWith(100*time.Millisecond, patience), func(_ *bed, c *Config) {
		c.Limits.MaxConnectionLead = 1000
	}, func(b *bed, _ *Config) { b.timing.discard = patience })
	b.pipeline.refuseWith(errRefused)
	a := connect(b, 1)
	const each = 300_000 // Far more than sockets hold.
	var sending sync.WaitGroup
	for i := range uint32(2) {
		p := a.join()
		sending.Add(1)
		go func() {
			defer sending.Done()
			_, err := p.conn.Write(append(namesOne(), calls(i*2*each, each)...))
			assert.NoError(t, err)
		}()
	}
	run := b.receiver.env.registry.lookup(1)
	b.await("a connection to wait", func() bool { return run.handover.waiting.Load() > 0 })
	done := b.shutdownInBackground()
	a.answerSuspend(4 * each)
	a.control.expectError()
	sending.Wait()
	assert.EqualValues(t, 4*each, run.stream.received.Load())
	b.await("what is dropped", func() bool { return b.metric("receiver_bytefrog_events_dropped") == 4*each })
	a.expectToLinger(b, 3)
	require.NoError(t, <-done)
}

func TestARunThatIsGivenUpEndsThoughItsAgentDoesNotClose(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	run := b.receiver.env.registry.lookup(1)
	b.await("events", func() bool { return run.stream.received.Load() == 100 })
	run.leave(unresponsive(time.Second))
	a.control.expectError()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 100)
	assert.Equal(t, callevent.End(100, callevent.CauseUnresponsive), s.end(t))
	again := connect(b, 1)
	assert.NotEqual(t, a.configuration.RunID, again.configuration.RunID)
	again.finish()
	b.awaitRuns(0)
	a.expectToLinger(b, 2)
}

// The agent must not wait for a pipeline that holds its run up.
func TestConnectionsLingerThoughThePipelineHoldsTheRunUp(t *testing.T) {
	for name, hold := range map[string]func(p *pipeline) (free func()){
		"it refuses": func(p *pipeline) func() {
			p.refuseWith(errRefused)
			return func() { p.refuseWith(nil) }
		},
		"it doesn't answer": func(p *pipeline) func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			hang := make(chan struct{})
			p.hang = hang
			return func() { close(hang) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, quickly, quickRetries, withDataConnections(1))
			free := hold(b.pipeline)
			a := connect(b, 1)
			p := a.join()
			p.write(append(namesOne(), calls(0, 50)...))
			run := b.receiver.env.registry.lookup(1)
			b.await("the connection to wait", func() bool { return run.handover.waiting.Load() == 1 })
			run.leave(unresponsive(time.Second))
			a.control.expectError()
			late := calls(100, 500_000) // Far more than sockets hold.
			p.write(late)
			b.await("it to be thrown away", func() bool { return b.metric("receiver_bytefrog_bytes_discarded") == int64(len(late)) })
			assert.Len(t, b.receiver.env.registry.list(), 1)
			free()
			a.expectToLinger(b, 2)
			s := b.pipeline.only(t)
			assert.Len(t, s.events, 100)
			assert.Equal(t, callevent.End(100, callevent.CauseUnresponsive), s.end(t))
		})
	}
}

func TestTheRunEndsIsSaidWithWhatItWas(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	data := append(namesOne(), calls(0, 50)...)
	p.write(data)
	a.control.send(bytefrog.DataBreak{Sequence: 100})
	run := b.receiver.env.registry.lookup(1)
	b.await("the break", func() bool { return run.breaks[callevent.CauseSuspended].Load() == 1 })
	a.finish()
	b.awaitRuns(0)
	lines := b.said.FilterMessage("The run ends: the agent ended the run").All()
	require.Len(t, lines, 1)
	said := lines[0].ContextMap()
	assert.EqualValues(t, 100, said["events"])
	assert.EqualValues(t, len(data), said["bytes"])
	assert.EqualValues(t, 1, said["breaks"])
	assert.Positive(t, said["duration"])
	assert.Equal(t, "ended", said["cause"])
}

func TestAShutdownUnderFullLoadEndsInTime(t *testing.T) {
	for name, refusal := range map[string]error{"accepting": nil, "refusing": errRefused} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(_ *bed, c *Config) { c.ShutdownTimeout = 500 * time.Millisecond })
			b.pipeline.refuseWith(refusal)
			var agents []*agent
			var sending sync.WaitGroup
			for range 3 {
				a := connect(b, 1)
				for range 2 {
					p := a.join()
					sending.Add(1)
					go func() {
						defer sending.Done()
						block := append(namesOne(), calls(0, 5000)...)
						for {
							if _, err := p.conn.Write(block); err != nil {
								return
							}
						}
					}()
				}
				agents = append(agents, a)
			}
			b.await("load", func() bool { return b.metric("receiver_bytefrog_events") > 10_000 })
			began := time.Now()
			done := b.shutdownInBackground()
			for _, a := range agents {
				a.answerSuspend(1 << 20)
			}
			require.NoError(t, <-done)
			assert.Less(t, time.Since(began), b.receiver.env.config.ShutdownTimeout+farewellTime)
			sending.Wait()
			assert.Empty(t, b.receiver.env.registry.list())
			if refusal != nil {
				assert.NotZero(t, b.metric("receiver_bytefrog_batches_dropped"))
				assert.NotZero(t, b.metric("receiver_bytefrog_events_dropped"))
			}
		})
	}
}

func TestAShutdownSaysWhenThePipelineHangs(t *testing.T) {
	b := unstartedBed(t, quickly, func(_ *bed, c *Config) { c.ShutdownTimeout = 50 * time.Millisecond })
	deaf := &deafPipeline{release: make(chan struct{})}
	b.receiver.traces = deaf
	require.NoError(t, b.receiver.Start(context.Background(), componenttest.NewNopHost()))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 5)...))
	a.join().close()
	p.close()
	a.control.close()
	b.await("the hand-over", func() bool { return deaf.entered() })
	assert.ErrorContains(t, b.receiver.Shutdown(context.Background()), "has not returned from a hand-over")
	close(deaf.release)
	b.awaitRuns(0)
}

func TestShutdownTwiceAndWithoutStart(t *testing.T) {
	b := unstartedBed(t)
	b.shutdown()
	b.shutdown()
	b = newBed(t)
	b.shutdown()
	b.shutdown()
}

func TestAPortInUseIsAClearError(t *testing.T) {
	first := newBed(t)
	second := unstartedBed(t, func(_ *bed, c *Config) { c.Endpoint = first.address() })
	err := second.receiver.Start(context.Background(), componenttest.NewNopHost())
	assert.ErrorContains(t, err, "listening for Bytefrog agents on endpoint "+first.address())
	assert.ErrorContains(t, err, "address already in use")
	assert.ErrorIs(t, second.receiver.Start(context.Background(), componenttest.NewNopHost()), err)
	second.shutdown()
}

func TestAnAgentThatIsLeftBeforeItIsStartedIsToldSo(t *testing.T) {
	b := newBed(t, quickly)
	conn, server := net.Pipe()
	p := &peer{t: t, conn: conn, version: 1}
	run, err := b.receiver.env.registry.open(func(id runID) (*run, error) {
		return newRun(b.receiver.env, id, 1, newInput(server, controlBytes, bytefrog.MaxString, time.Minute))
	})
	require.NoError(t, err)
	run.leave(shutdown())
	b.receiver.env.telemetry.runs(1)
	go run.keep()
	go b.receiver.startAndRead(run)
	p.expectToBeTurnedAway("the receiver is shutting down")
	p.close()
	b.awaitRuns(0)
	assert.Empty(t, b.pipeline.streams(t), "a run that never began has no end")
}

func TestAnAgentThatIsLeftWhileItIsStartedIsStartedFirst(t *testing.T) {
	b := newBed(t, quickly)
	conn, server := net.Pipe()
	p := &peer{t: t, conn: conn, version: 1}
	run, err := b.receiver.env.registry.open(func(id runID) (*run, error) {
		return newRun(b.receiver.env, id, 1, newInput(server, controlBytes, bytefrog.MaxString, time.Minute))
	})
	require.NoError(t, err)
	b.receiver.env.telemetry.runs(1)
	go run.keep()
	go b.receiver.startAndRead(run)
	m, err := p.receive()
	require.NoError(t, err)
	_, err = bytefrog.ParseAgentConfiguration(m)
	require.NoError(t, err)
	// Nobody reads, so start is being sent till now.
	go run.leave(shutdown())
	p.expectCommand(bytefrog.TypeStart)
	p.expectCommand(bytefrog.TypeSuspend)
	assert.Equal(t, "the receiver is shutting down", p.expectError())
	p.close()
	b.awaitRuns(0)
}

func TestAReloadTakesTheSamePortAgain(t *testing.T) {
	b := newBed(t, quickly)
	address := b.address()
	a := connect(b, 1)
	done := b.shutdownInBackground()
	a.answerSuspend(0)
	require.NoError(t, <-done)
	next := newBed(t, quickly, func(_ *bed, c *Config) { c.Endpoint = address })
	b2 := connect(next, 1)
	b2.finish()
	next.awaitRuns(0)
}

func TestARunBeyondItsMemoryIsGivenUp(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) { c.Limits.MaxRunMemory = minRunMemory })
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 5)...))
	go func() {
		for i := range uint32(100_000) {
			name := bytefrog.MapMethod{Method: 2 + i, Signature: string(make([]byte, 1000)) + string(rune('a'+i%26)) + time.Now().String()}
			if _, err := p.conn.Write(encode(name)); err != nil {
				return
			}
		}
	}()
	assert.Contains(t, a.control.expectError(), "limits.max_run_memory is reached (1048576)")
	a.control.close()
	p.close()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 10)
	assert.Equal(t, callevent.CauseLimit, s.end(t).Cause)
}

// It would take suspend for an error, and throw away what it has not sent.
func TestAnAgentThatIsShuttingDownIsNotToldToSuspend(t *testing.T) {
	b := newBed(t, shutdownWith(5*time.Second, patience), withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown})
	run := b.receiver.env.registry.lookup(1)
	b.await("mode X", func() bool { return run.control.lastMode() == bytefrog.ModeShuttingDown })
	done := b.shutdownInBackground()
	b.await("leaving", run.isLeaving)
	p.write(calls(100, 50))
	p.close()
	assert.Equal(t, "the receiver is shutting down", a.control.expectError())
	a.control.close()
	require.NoError(t, <-done)
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 200)
	assert.Empty(t, s.breaks())
}
