// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

func (b *bed) shutdownInBackground() <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.Component().Shutdown(context.Background()) }()
	return done
}

func TestAShutdownReadsAllThenSendsErrorThenWaitsForTheAgent(t *testing.T) {
	b := newBed(t, patiently)
	a := connect(b, 1)
	p := a.join()
	a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	done := b.shutdownInBackground()
	a.control.expectCommand(bytefrog.TypeSuspend)
	// Earlier data still arrives, before and after the data break.
	p.write(calls(100, 50))
	a.control.send(bytefrog.DataBreak{Sequence: 300})
	p.write(calls(200, 50))
	// All numbers have arrived, so the receiver waits for no silence.
	assert.Equal(t, "the receiver is shutting down", a.control.expectError())
	a.expectToLinger(b, 3)
	require.NoError(t, <-done)
	s := b.only()
	assert.Len(t, s.events, 300)
	assert.Equal(t, callevent.End(300, callevent.CauseShutdown), s.end(t))
	assert.Equal(t, []callevent.Barrier{callevent.Point(300, callevent.CauseShutdown)}, s.breaks(), "the break that leaving asks for")
}

func TestAnAgentThatDoesNotCloseIsClosedDataFirst(t *testing.T) {
	b := newBed(t, patiently, func(b *bed, c *Config) { b.timing.parting, c.ShutdownTimeout = time.Millisecond, time.Second })
	a := connect(b, 1)
	a.join()
	a.join()
	done := b.shutdownInBackground()
	a.answerSuspend(0)
	a.control.expectError()
	a.expectDataToBeClosedFirst(b)
	assert.Error(t, b.receiver.env.receiver.Delivering.Err(), "the shutdown's time is over")
	require.NoError(t, <-done)
	assert.EqualValues(t, 2, b.Counter("lingering_cut"))
}

func TestTheReceiverClosesConnectionsThatTheAgentDoesNotClose(t *testing.T) {
	b := newBed(t, patiently, func(b *bed, c *Config) {
		b.timing.parting, b.timing.control, c.ShutdownTimeout = time.Millisecond, time.Millisecond, time.Second
	})
	a := connect(b, 1)
	a.join()
	done := b.shutdownInBackground()
	a.answerSuspend(0)
	a.control.expectError()
	require.NoError(t, <-done)
	a.data[0].expectEnd()
	a.control.expectEnd()
	assert.EqualValues(t, 2, b.Counter("lingering_cut"))
}

// Such an agent may be stopped: it has all the time there is.
func TestAnAgentThatDoesNotAnswerHasUntilTheShutdownsTimeIsOver(t *testing.T) {
	b := newBed(t, patiently, func(b *bed, c *Config) {
		b.timing.Farewell, b.timing.Quiet, b.timing.parting = time.Millisecond, 50*time.Millisecond, time.Millisecond
		c.ShutdownTimeout = time.Second
	})
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	b.Await("events", func() bool { return b.events() == 100 })
	done := b.shutdownInBackground()
	a.control.expectCommand(bytefrog.TypeSuspend)
	a.control.expectError()
	p.expectEnd()
	assert.Error(t, b.receiver.env.receiver.Delivering.Err(), "the shutdown's time is over")
	a.expectDataToBeClosedFirst(b)
	require.NoError(t, <-done)
	assert.Len(t, b.only().events, 100)
}

// While the pipeline refuses, the agent must not be left with something unsent.
func TestSentDataIsReadThoughTheShutdownsTimeIsOver(t *testing.T) {
	b := newBed(t, patiently, quickRetries, func(_ *bed, c *Config) {
		c.Limits.MaxConnectionLead = 1000
		c.ShutdownTimeout = 100 * time.Millisecond
	})
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	const each = 30_000 // Far more than sockets hold.
	var sending sync.WaitGroup
	for i := range uint32(2) {
		p := a.join()
		require.NoError(t, p.conn.(*net.TCPConn).SetWriteBuffer(64<<10))
		sending.Add(1)
		go func() {
			defer sending.Done()
			_, err := p.conn.Write(append(namesOne(), calls(i*2*each, each)...))
			assert.NoError(t, err)
		}()
	}
	run := b.receiver.env.registry.lookup(1)
	b.Await("a connection to wait", func() bool { return run.State().Waiting > 0 })
	done := b.shutdownInBackground()
	a.answerSuspend(4 * each)
	a.control.expectError()
	sending.Wait()
	assert.EqualValues(t, 4*each, run.State().Events)
	b.Await("the drops", func() bool { return b.Counter("events_dropped") == 4*each })
	a.expectToLinger(b, 3)
	require.NoError(t, <-done)
}

func TestADisconnectedRunEndsThoughItsAgentDoesNotClose(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	run := b.receiver.env.registry.lookup(1)
	b.Await("events", func() bool { return run.State().Events == 100 })
	run.Leave(session.Unresponsive(time.Second))
	a.control.expectError()
	b.awaitRuns(0)
	s := b.only()
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
	for name, hold := range map[string]func(p *receivertestbed.Traces) (release func()){
		"it refuses": func(p *receivertestbed.Traces) func() {
			p.RefuseWith(receivertestbed.ErrRefused)
			return func() { p.RefuseWith(nil) }
		},
		"it does not return": func(p *receivertestbed.Traces) func() { return p.Hang(false) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, quickly, quickRetries, withDataConnections(1))
			release := hold(b.Traces)
			a := connect(b, 1)
			p := a.join()
			p.write(append(namesOne(), calls(0, 50)...))
			run := b.receiver.env.registry.lookup(1)
			b.Await("the connection to wait", func() bool { return run.State().Waiting == 1 })
			run.Leave(session.Unresponsive(time.Second))
			a.control.expectError()
			late := slices.Repeat(calls(100, 5_000), 100) // Far more than sockets hold.
			p.write(late)
			b.Await("it to be thrown away", func() bool { return b.Counter("bytes_discarded") == int64(len(late)) })
			assert.Len(t, b.receiver.env.registry.list(), 1)
			release()
			a.expectToLinger(b, 2)
			s := b.only()
			assert.Len(t, s.events, 100)
			assert.Equal(t, callevent.End(100, callevent.CauseUnresponsive), s.end(t))
		})
	}
}

// It would take it for an error.
func TestAnAgentThatWasSentErrorGetsNoSuspend(t *testing.T) {
	b := newBed(t, quickly, quickRetries, suspendsOnOverload, withDataConnections(1), func(_ *bed, c *Config) {
		c.ShutdownTimeout = 50 * time.Millisecond
	})
	release := b.Traces.Hang(false)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	run := b.receiver.env.registry.lookup(1)
	b.Await("the connection to wait", func() bool { return run.State().Waiting == 1 })
	run.Leave(session.Unresponsive(time.Second))
	a.control.expectError()
	// A refusal suspends other agents.
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	release()
	b.Await("the batch to be held", func() bool { return run.State().Holds })
	b.Traces.RefuseWith(nil)
	b.awaitRuns(0)
	assert.Len(t, b.only().events, 100)
	assert.Zero(t, b.Counter("suspends"))
	b.Shutdown()
	a.control.expectEnd()
}

func TestTheEndOfARunIsLoggedWithItsSums(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	data := append(namesOne(), calls(0, 50)...)
	p.write(data)
	a.control.send(bytefrog.DataBreak{Sequence: 100})
	run := b.receiver.env.registry.lookup(1)
	b.Await("the break", func() bool { return run.State().Breaks[callevent.CauseSuspended] == 1 })
	a.finish()
	b.awaitRuns(0)
	lines := b.Log.FilterMessage("The run ends: the agent ended the run").All()
	require.Len(t, lines, 1)
	said := lines[0].ContextMap()
	assert.EqualValues(t, 100, said["events"])
	assert.EqualValues(t, len(data), said["bytes"])
	assert.EqualValues(t, 1, said["breaks"])
	assert.Positive(t, said["duration"])
	assert.Equal(t, "ended", said["cause"])
}

func TestAShutdownUnderFullLoadEnds(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"accepting": nil, "refusing": receivertestbed.ErrRefused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, quickly, func(_ *bed, c *Config) { c.ShutdownTimeout = 500 * time.Millisecond })
			b.Traces.RefuseWith(refusal)
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
			b.Await("load", func() bool { return b.Counter("events") > 10_000 })
			done := b.shutdownInBackground()
			for _, a := range agents {
				a.answerSuspend(1 << 20)
			}
			require.NoError(t, <-done)
			sending.Wait()
			assert.Empty(t, b.receiver.env.registry.list())
			if refusal != nil {
				assert.NotZero(t, b.Counter("batches_dropped"))
				assert.NotZero(t, b.Counter("events_dropped"))
			}
		})
	}
}

// What one agent can take of a shutdown, one after the other, has room in its time.
func TestTheShutdownTimeCoversAllWaitsForAnAgent(t *testing.T) {
	d := defaultTiming()
	assert.Less(t, d.Farewell+d.Discard+d.parting+d.control, farewellTime)
	assert.Less(t, d.hello+d.ready+d.parting+d.control, farewellTime)
}

func TestAShutdownLogsTheReasonOfItsWait(t *testing.T) {
	b := unstartedBed(t, quickly, func(_ *bed, c *Config) { c.ShutdownTimeout = 50 * time.Millisecond })
	deaf := &deafPipeline{release: make(chan struct{})}
	b.Next.Traces = deaf
	b.Kit().Overtime = time.Second
	require.NoError(t, b.Component().Start(context.Background(), componenttest.NewNopHost()))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 5)...))
	a.join().close()
	p.close()
	a.control.close()
	b.Await("the hand-over", func() bool { return deaf.entered() })
	assert.ErrorContains(t, b.Component().Shutdown(context.Background()), "expected the shutdown to end within shutdown_timeout (50ms) and 1s: "+
		"still open are runs (1), calls to the pipeline that have not returned (1)")
	close(deaf.release)
	b.awaitRuns(0)
}

func TestShutdownTwiceAndWithoutStart(t *testing.T) {
	b := unstartedBed(t)
	b.Shutdown()
	b.Shutdown()
	b = newBed(t)
	b.Shutdown()
	b.Shutdown()
}

func TestAPortInUseIsAClearError(t *testing.T) {
	first := newBed(t)
	second := unstartedBed(t, func(_ *bed, c *Config) { c.Endpoint = first.address() })
	err := second.Component().Start(context.Background(), componenttest.NewNopHost())
	assert.ErrorContains(t, err, "listening for Bytefrog agents on endpoint "+first.address())
	assert.ErrorContains(t, err, "address already in use")
	assert.ErrorIs(t, second.Component().Start(context.Background(), componenttest.NewNopHost()), err)
	second.Shutdown()
}

func TestAnAgentDisconnectedBeforeItsStartReceivesTheReason(t *testing.T) {
	b := newBed(t, quickly)
	conn, server := net.Pipe()
	p := &peer{t: t, conn: conn, version: 1}
	in := newReader(server)
	run, err := b.receiver.openSession(1, in)
	require.NoError(t, err)
	run.Leave(session.ShuttingDown())
	b.receiver.env.receiver.Go(func() { b.receiver.serveAgent(run, 1, in) })
	p.expectToBeTurnedAway("the receiver is shutting down")
	p.close()
	b.awaitRuns(0)
	assert.Empty(t, b.streams(), "a run that never began has no end")
}

// A guard does so whose collector was stopped for too long, and its program is traced then.
func TestAnAgentThatHasClosedItsConnectionIsNotTurnedAway(t *testing.T) {
	b := newBed(t, quickly)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	p := dial(t, listener.Addr().String())
	server, err := listener.Accept()
	require.NoError(t, err)
	// The connection is reset immediately, and not at the first unread message.
	require.NoError(t, p.conn.(*net.TCPConn).SetLinger(0))
	p.close()
	in := newReader(server)
	run, err := b.receiver.openSession(1, in)
	require.NoError(t, err)
	b.receiver.serveAgent(run, 1, in)
	b.awaitRuns(0)
	assert.Empty(t, b.Log.FilterLevelExact(zapcore.WarnLevel).All())
	assert.Equal(t, 1, b.Log.FilterMessage("The run ends: the agent closed its connection before it was started").Len())
	assert.Zero(t, b.Counter("refused"))
	assert.Empty(t, b.streams(), "a run that never began has no end")
}

func TestAnAgentDisconnectedDuringItsStartIsStartedFirst(t *testing.T) {
	b := newBed(t, quickly)
	conn, server := net.Pipe()
	p := &peer{t: t, conn: conn, version: 1}
	in := newReader(server)
	run, err := b.receiver.openSession(1, in)
	require.NoError(t, err)
	b.receiver.env.receiver.Go(func() { b.receiver.serveAgent(run, 1, in) })
	m, err := p.receive()
	require.NoError(t, err)
	c, err := bytefrog.ParseAgentConfiguration(m)
	require.NoError(t, err)
	assert.Positive(t, c.DataConnections, "it is not refused")
	// The pipe has no buffer, so start is being sent until the agent reads it.
	go run.Leave(session.ShuttingDown())
	p.expectCommand(bytefrog.TypeStart)
	b.Await("the run to be left", func() bool { return run.State().Leaving })
	p.close()
	b.awaitRuns(0)
	assert.Equal(t, callevent.CauseShutdown, b.only().end(t).Cause, "a run that began has an end")
}

func TestAReloadListensOnTheSamePortAgain(t *testing.T) {
	address := testkit.Address(t)
	fixed := func(_ *bed, c *Config) { c.Endpoint = address }
	b := newBed(t, quickly, fixed)
	a := connect(b, 1)
	a.join()
	done := b.shutdownInBackground()
	a.answerSuspend(0)
	a.finish()
	require.NoError(t, <-done)
	next := newBed(t, quickly, fixed)
	b2 := connect(next, 1)
	b2.finish()
	next.awaitRuns(0)
}

func TestARunBeyondItsMemoryEnds(t *testing.T) {
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
	s := b.only()
	assert.Len(t, s.events, 10)
	assert.Equal(t, callevent.CauseLimit, s.end(t).Cause)
}

// It would treat suspend as an error, and discard its unsent data.
func TestAnAgentThatIsShuttingDownGetsNoSuspend(t *testing.T) {
	b := newBed(t, patiently, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown})
	run := b.receiver.env.registry.lookup(1)
	b.Await("mode X", func() bool { return run.State().Mode == bytefrog.ModeShuttingDown })
	done := b.shutdownInBackground()
	b.Await("leaving", func() bool { return run.State().Leaving })
	p.write(calls(100, 50))
	p.close()
	assert.Equal(t, "the receiver is shutting down", a.control.expectError())
	a.control.close()
	require.NoError(t, <-done)
	s := b.only()
	assert.Len(t, s.events, 200)
	assert.Empty(t, s.breaks())
}

// expectDataToBeClosedFirst expects that the agent's data connections are closed while
// its control connection stays open, and closes that.
func (a *agent) expectDataToBeClosedFirst(b *bed) {
	a.t.Helper()
	for _, p := range a.data {
		p.expectEnd()
	}
	assert.EqualValues(a.t, len(a.data), b.Counter("lingering_cut"))
	b.Await("the control connection to be left", func() bool { return b.Counter("lingering") == 1 })
	a.control.close()
}
