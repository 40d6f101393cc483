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

func TestAShutdownLeavesAgentsInTheHarmlessOrder(t *testing.T) {
	b := newBed(t)
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
	began := time.Now()
	data, control := a.ends()
	dataAt, controlAt := <-data, <-control
	require.NoError(t, <-done)
	assert.Less(t, dataAt.Sub(began), time.Second, "all that was sent had come: there was nothing to wait for")
	assert.GreaterOrEqual(t, controlAt.Sub(dataAt), 250*time.Millisecond, "the control connection outlives the data connections")
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 300)
	assert.Equal(t, callevent.End(300, callevent.CauseShutdown), s.end(t))
	assert.Equal(t, []callevent.Barrier{callevent.Point(300, callevent.CauseShutdown)}, s.breaks(), "the break that leaving asks for")
}

func TestAnAgentThatDoesNotAnswerIsLeftAllTheSame(t *testing.T) {
	b := newBed(t)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	done := b.shutdownInBackground()
	a.control.expectCommand(bytefrog.TypeSuspend)
	data, control := a.ends()
	dataAt, controlAt := <-data, <-control
	require.NoError(t, <-done)
	assert.GreaterOrEqual(t, controlAt.Sub(dataAt), 250*time.Millisecond)
	assert.Len(t, b.pipeline.only(t).events, 100)
}

func TestAnAgentThatIsGivenUpIsToldFirst(t *testing.T) {
	b := newBed(t)
	a := connect(b, 1)
	p := a.join()
	p.write([]byte{99, 0})
	p.write([]byte{0})
	b.await("leaving", b.receiver.env.registry.lookup(1).isLeaving)
	a2 := connect(b, 1)
	p2 := a2.join()
	a2.join()
	p2.write([]byte{111})
	a2.control.expectError()
	data, control := a2.ends()
	dataAt, controlAt := <-data, <-control
	assert.GreaterOrEqual(t, controlAt.Sub(dataAt), 250*time.Millisecond)
	p.close()
	a.control.close()
	b.awaitRuns(0)
}

func TestAShutdownUnderFullLoadEndsInTime(t *testing.T) {
	for name, refusal := range map[string]error{"accepting": nil, "refusing": errRefused} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(_ *bed, c *Config) { c.ShutdownTimeout = 2 * time.Second })
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
			assert.Less(t, time.Since(began), 4*time.Second)
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
	require.NoError(t, run.start())
	assert.False(t, run.isStarted())
	b.receiver.env.telemetry.runs(1)
	go run.keep()
	go run.readControl()
	p.expectToBeTurnedAway("the receiver is shutting down")
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
	go func() {
		assert.NoError(t, run.start())
		run.readControl()
	}()
	m, err := p.receive()
	require.NoError(t, err)
	_, err = bytefrog.ParseAgentConfiguration(m)
	require.NoError(t, err)
	// Nobody reads, so start is being sent till now.
	go run.leave(shutdown())
	p.expectCommand(bytefrog.TypeStart)
	p.expectCommand(bytefrog.TypeSuspend)
	p.expectEnd()
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
	a.control.expectEnd()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 10)
	assert.Equal(t, callevent.CauseLimit, s.end(t).Cause)
}
