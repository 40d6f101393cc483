// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

// steering is an agent that is steered while the test plays it.
type steering struct {
	t testing.TB
	*bed
	agent  *agent
	data   *peer
	theirs agentcontrol.Agent
}

// steerable makes the receiver one whose agents are shown, with one data connection.
func steerable(b *bed, c *Config) {
	b.Host = &agentcontroltest.Directory{}
	c.Agent.DataConnections = 1
	c.Agent.HeartbeatInterval = time.Hour // a test says when
}

func (b *bed) steered() []agentcontrol.Agent { return b.Host.(*agentcontroltest.Directory).Agents() }

func (b *bed) onlySteered() agentcontrol.Agent {
	b.T.Helper()
	b.Await("an agent to be steered", func() bool { return len(b.steered()) == 1 })
	return b.steered()[0]
}

// steer begins with an agent that traces.
func steer(t *testing.T, options ...option) *steering {
	t.Helper()
	b := newBed(t, append([]option{patiently, steerable}, options...)...)
	s := &steering{t: t, bed: b, agent: connect(b, 1)}
	s.data = s.agent.join()
	s.data.write(namesOne())
	s.theirs = b.onlySteered()
	s.beat(bytefrog.ModeTracing)
	b.Await("a heartbeat", func() bool { return s.theirs.Snapshot().State == "tracing" })
	return s
}

// pause pauses the program.
func (s *steering) pause() {
	s.T.Helper()
	pausing := s.order("pause")
	s.expectTold(bytefrog.TypePause)
	s.beat(bytefrog.ModePaused)
	s.expectDone(pausing, "the program is paused")
}

func (s *steering) beat(mode bytefrog.Mode) {
	s.T.Helper()
	s.agent.control.send(bytefrog.Heartbeat{Mode: mode})
}

// outcome is what became of an order.
type outcome struct {
	answer agentcontrol.Answer
	err    error
}

// order begins an order, and gives what becomes of it.
func order(ctx context.Context, a agentcontrol.Agent, command string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		answer, err := agentcontroltest.Order(ctx, a, command, nil)
		done <- outcome{answer, err}
	}()
	return done
}

func (s *steering) order(command string) <-chan outcome {
	return order(context.Background(), s.theirs, command)
}

func (s *steering) expectDone(done <-chan outcome, message string) {
	s.T.Helper()
	o := <-done
	require.NoError(s.T, o.err)
	assert.Equal(s.T, message, o.answer.Message)
}

func expectReason(t testing.TB, done <-chan outcome, reason agentcontrol.Reason) {
	t.Helper()
	o := <-done
	require.Error(t, o.err)
	assert.Equal(t, reason, agentcontrol.ReasonOf(o.err), o.err.Error())
}

// expectNothing gives what may come by mistake the time to come.
func (s *steering) expectNothing(done <-chan outcome) {
	s.T.Helper()
	select {
	case o := <-done:
		require.Fail(s.T, "the agent has said nothing", "%v", o)
	case <-time.After(100 * time.Millisecond):
	}
}

func (s *steering) expectTold(of ...bytefrog.MessageType) {
	s.T.Helper()
	for _, m := range of {
		s.agent.control.expectCommand(m)
	}
}

// leave ends the run as the agent does.
func (s *steering) leave() {
	s.T.Helper()
	s.agent.finish()
	s.awaitRuns(0)
	s.Await("no steered agent", func() bool { return len(s.steered()) == 0 })
}

func TestAnAgentIsSuspendedAndContinues(t *testing.T) {
	s := steer(t)
	s.data.write(calls(0, 5))
	suspending := s.order("suspend")
	s.expectTold(bytefrog.TypeSuspend)
	assert.Empty(t, suspending, "it has not answered")
	s.agent.control.send(bytefrog.DataBreak{Sequence: 10})
	s.expectDone(suspending, "tracing is suspended")
	assert.Equal(t, "suspended", s.theirs.Snapshot().State, "before the heartbeat with that mode")
	s.expectDone(s.order("suspend"), "tracing was suspended already")
	going := s.order("unsuspend")
	s.expectTold(bytefrog.TypeUnsuspend)
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "tracing goes on")
	s.data.write(calls(10, 5))
	s.expectDone(s.order("unsuspend"), "tracing was not suspended")
	s.leave()
	seen := s.only()
	assert.Len(t, seen.events, 20)
	assert.Equal(t, []callevent.Barrier{callevent.Point(10, callevent.CauseSuspended)}, seen.breaks())
}

func TestUnsuspendWaitsForTheAnswerToSuspend(t *testing.T) {
	s := steer(t)
	suspending := s.order("suspend")
	s.expectTold(bytefrog.TypeSuspend)
	going := s.order("unsuspend")
	run := s.receiver.env.registry.lookup(1)
	s.Await("the order to be there", func() bool { return run.State().Agent.Reasons&hq.Operator == 0 })
	// Nothing is sent until the break is there.
	s.expectNothing(going)
	assert.True(t, run.State().Agent.State.IsSuspended())
	s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
	s.expectTold(bytefrog.TypeUnsuspend)
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "tracing goes on")
	// It was suspended, or was not any more when that was looked at.
	o := <-suspending
	require.NoError(t, o.err)
}

func TestUnsuspendResumesAnAgentThatNeverAnsweredSuspend(t *testing.T) {
	s := steer(t, func(b *bed, _ *Config) { b.timing.Answer = time.Millisecond })
	s.data.write(calls(0, 5))
	s.Await("events", func() bool { return s.Counter("events") == 10 })
	ctx, giveUp := context.WithCancel(context.Background())
	suspending := order(ctx, s.theirs, "suspend")
	s.expectTold(bytefrog.TypeSuspend)
	giveUp()
	expectReason(t, suspending, agentcontrol.NoAnswer)
	going := s.order("unsuspend")
	s.expectTold(bytefrog.TypeUnsuspend)
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "tracing goes on")
	s.data.write(calls(20, 5))
	s.leave()
	assert.Contains(t, s.only().breaks(), callevent.Interval(10, 20, callevent.CauseSuspended))
}

// A heartbeat from before the command does not show the agent's state. Events show it even while
// heartbeats have the old mode.
func TestOnlyANewSignShowsThatTracingContinues(t *testing.T) {
	s := steer(t)
	suspending := s.order("suspend")
	s.expectTold(bytefrog.TypeSuspend)
	s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
	s.expectDone(suspending, "tracing is suspended")
	going := s.order("unsuspend")
	s.expectTold(bytefrog.TypeUnsuspend)
	s.expectNothing(going)
	s.beat(bytefrog.ModeSuspended) // it was sent before the agent read the order
	s.expectNothing(going)
	s.data.write(calls(0, 5))
	s.Await("events", func() bool { return s.Counter("events") == 10 })
	s.beat(bytefrog.ModeSuspended)
	s.expectDone(going, "tracing goes on")
	assert.Equal(t, "tracing", s.theirs.Snapshot().State, "before the heartbeat with that mode")
}

func TestOnlyANewHeartbeatShowsThatTheProgramContinues(t *testing.T) {
	s := steer(t)
	s.beat(bytefrog.ModePaused) // by a collector before this one
	s.Await("the heartbeat", func() bool { return s.theirs.Snapshot().State == "paused" })
	going := s.order("unpause")
	s.expectTold(bytefrog.TypeUnpause)
	s.expectNothing(going)
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "the program goes on")
}

func TestTwoOrdersAtTheSameTimeAreOneSuspend(t *testing.T) {
	s := steer(t)
	one, two := s.order("suspend"), s.order("suspend")
	s.expectTold(bytefrog.TypeSuspend)
	s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
	for _, done := range []<-chan outcome{one, two} {
		o := <-done
		require.NoError(t, o.err)
	}
	going := s.order("unsuspend")
	s.expectTold(bytefrog.TypeUnsuspend) // and no suspend before it
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "tracing goes on")
}

func TestTheProgramIsPausedAndContinues(t *testing.T) {
	s := steer(t)
	s.pause()
	assert.Equal(t, "paused", s.theirs.Snapshot().State)
	s.expectDone(s.order("pause"), "the program was paused already")
	going := s.order("unpause")
	s.expectTold(bytefrog.TypeUnpause)
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "the program goes on")
}

// Somebody else takes it back before the agent has said that it is so.
func TestACommandThatAnotherOneCancelsReportsThat(t *testing.T) {
	t.Run("suspend", func(t *testing.T) {
		s := steer(t)
		suspending := s.order("suspend")
		s.expectTold(bytefrog.TypeSuspend)
		going := s.order("unsuspend")
		s.expectDone(suspending, "another command resumed tracing meanwhile")
		s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
		s.expectTold(bytefrog.TypeUnsuspend)
		s.beat(bytefrog.ModeTracing)
		s.expectDone(going, "tracing goes on")
	})
	t.Run("pause", func(t *testing.T) {
		s := steer(t)
		pausing := s.order("pause")
		s.expectTold(bytefrog.TypePause)
		going := s.order("unpause")
		s.expectTold(bytefrog.TypeUnpause)
		s.expectDone(pausing, "another command resumed the program meanwhile")
		s.beat(bytefrog.ModeTracing)
		s.expectDone(going, "the program goes on")
	})
	t.Run("unpause", func(t *testing.T) {
		s := steer(t)
		pausing := s.order("pause")
		s.expectTold(bytefrog.TypePause)
		s.beat(bytefrog.ModePaused)
		s.expectDone(pausing, "the program is paused")
		going := s.order("unpause")
		s.expectTold(bytefrog.TypeUnpause)
		pausing = s.order("pause")
		s.expectTold(bytefrog.TypePause)
		s.expectDone(going, "another command paused the program meanwhile")
		s.beat(bytefrog.ModePaused)
		s.expectDone(pausing, "the program is paused")
	})
	t.Run("unsuspend", func(t *testing.T) {
		s := steer(t)
		suspending := s.order("suspend")
		s.expectTold(bytefrog.TypeSuspend)
		s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
		s.expectDone(suspending, "tracing is suspended")
		s.beat(bytefrog.ModeSuspended)
		going := s.order("unsuspend")
		s.expectTold(bytefrog.TypeUnsuspend)
		suspending = s.order("suspend")
		s.expectTold(bytefrog.TypeSuspend)
		s.expectDone(going, "another command suspended tracing meanwhile")
		s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
		s.expectDone(suspending, "tracing is suspended")
	})
	t.Run("unsuspend that waits for the agent", func(t *testing.T) {
		s := steer(t)
		suspending := s.order("suspend")
		s.expectTold(bytefrog.TypeSuspend)
		going := s.order("unsuspend")
		run := s.receiver.env.registry.lookup(1)
		s.Await("the order to be there", func() bool { return run.State().Agent.Reasons&hq.Operator == 0 })
		again := s.order("suspend")
		s.expectDone(going, "another command suspended tracing meanwhile")
		s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
		s.expectDone(again, "tracing is suspended")
		require.NoError(t, (<-suspending).err)
	})
}

// An agent takes unpause for an error when its program is not paused, and ends tracing.
func TestAProgramThatIsNotPausedGetsNoUnpause(t *testing.T) {
	s := steer(t)
	s.beat(bytefrog.ModeTracing)
	s.expectDone(s.order("unpause"), "the program was not paused")
	suspending := s.order("suspend")
	s.expectTold(bytefrog.TypeSuspend) // and no unpause before it
	s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
	s.expectDone(suspending, "tracing is suspended")
}

func TestACancelledRequestSendsNoCommand(t *testing.T) {
	s := steer(t)
	gone, giveUp := context.WithCancel(context.Background())
	giveUp()
	for range 20 { // which of two things is seen first is chance
		o := <-order(gone, s.theirs, "pause")
		require.ErrorContains(t, o.err, "request cancelled before the command was sent")
	}
	assert.NotEqual(t, hq.Paused, s.receiver.env.registry.lookup(1).State().Agent.State)
}

// An agent takes pause for an error while it is suspended, and suspend while it is paused.
func TestPauseIsRefusedWhileTracingIsSuspended(t *testing.T) {
	s := steer(t)
	suspending := s.order("suspend")
	s.expectTold(bytefrog.TypeSuspend)
	expectReason(t, s.order("pause"), agentcontrol.NotNow)
	s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
	s.expectDone(suspending, "tracing is suspended")
	expectReason(t, s.order("pause"), agentcontrol.NotNow)
	s.expectDone(s.order("unpause"), "the program was not paused")
	going := s.order("unsuspend")
	s.expectTold(bytefrog.TypeUnsuspend) // and no pause before it
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "tracing goes on")
	s.pause()
}

func TestAPausedProgramContinuesBeforeItsAgentIsSuspended(t *testing.T) {
	s := steer(t)
	s.pause()
	suspending := s.order("suspend")
	s.expectTold(bytefrog.TypeUnpause, bytefrog.TypeSuspend)
	s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
	s.expectDone(suspending, "tracing is suspended; the program was paused, and goes on")
	// The heartbeat still says paused.
	assert.Equal(t, "suspended", s.theirs.Snapshot().State)
	s.expectDone(s.order("unpause"), "the program was not paused")
	going := s.order("unsuspend")
	s.expectTold(bytefrog.TypeUnsuspend) // and no unpause before it
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "tracing goes on")
}

// The heartbeat that says paused may be of before unpause.
func TestAProgramGetsOneUnpause(t *testing.T) {
	s := steer(t)
	s.pause()
	going := s.order("unpause")
	s.expectTold(bytefrog.TypeUnpause)
	s.expectDone(s.order("unpause"), "the program was not paused")
	suspending := s.order("suspend")
	s.expectTold(bytefrog.TypeSuspend) // and no second unpause before it
	s.beat(bytefrog.ModeSuspended)
	s.expectDone(going, "the program goes on")
	s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
	s.expectDone(suspending, "tracing is suspended")
}

func TestAPausedAgentIsSuspendedForOverloadWhenItsProgramContinues(t *testing.T) {
	s := steer(t, quickRetries, suspendsOnOverload)
	s.pause()
	s.Traces.RefuseWith(receivertestbed.ErrRefused)
	s.data.write(calls(0, 5)) // what its buffers had
	run := s.receiver.env.registry.lookup(1)
	s.Await("an overload", func() bool { return run.State().Agent.Reasons&hq.Overload != 0 })
	assert.Zero(t, s.Counter("suspends"))
	s.expectDone(s.order("pause"), "the program was paused already")
	going := s.order("unpause")
	s.expectTold(bytefrog.TypeUnpause, bytefrog.TypeSuspend) // and no suspend before it
	s.beat(bytefrog.ModeSuspended)
	s.expectDone(going, "the program goes on")
	expectReason(t, s.order("pause"), agentcontrol.NotNow)
	s.agent.control.send(bytefrog.DataBreak{Sequence: 10})
	s.Traces.RefuseWith(nil)
	s.expectTold(bytefrog.TypeUnsuspend)
	assert.EqualValues(t, 1, s.Counter("suspends"))
}

func TestAnOverloadThatEndsWhileTheProgramIsPausedSuspendsNothing(t *testing.T) {
	s := steer(t, quickRetries, suspendsOnOverload)
	s.pause()
	s.Traces.RefuseWith(receivertestbed.ErrRefused)
	s.data.write(calls(0, 5))
	run := s.receiver.env.registry.lookup(1)
	overloaded := func() bool { return run.State().Agent.Reasons&hq.Overload != 0 }
	s.Await("an overload", overloaded)
	s.Traces.RefuseWith(nil)
	s.Await("the overload to be over", func() bool { return !overloaded() })
	going := s.order("unpause")
	s.expectTold(bytefrog.TypeUnpause)
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "the program goes on")
	suspending := s.order("suspend")
	s.expectTold(bytefrog.TypeSuspend) // the first
	s.agent.control.send(bytefrog.DataBreak{Sequence: 10})
	s.expectDone(suspending, "tracing is suspended")
}

// patientProgram calls one method until its tracing is over, and waits while it is suspended.
type patientProgram struct{}

func (patientProgram) Run(t *bytefrogagent.Tracer) error {
	var mu sync.Mutex
	var next uint32
	for {
		err := restless{}.fill(t, 0, &mu, &next)
		for errors.Is(err, bytefrogagent.ErrSuspended) {
			t.Break(next)
			err = t.AwaitUnsuspend()
		}
		if err != nil {
			return err
		}
		t.Sleep(time.Millisecond)
	}
}

// The played agent ends its tracing at an order that does not fit its mode, as Java's does.
func TestNoOrderEndsTracingByMistake(t *testing.T) {
	const orders, seeds = 200, 3
	names := []string{"suspend", "unsuspend", "pause", "unpause"}
	for seed := range uint64(seeds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			b := newBed(t, quickRetries, suspendsOnOverload, quickHeart, func(b *bed, c *Config) {
				steerable(b, c)
				c.Agent.HeartbeatInterval = 10 * time.Millisecond
			})
			result := make(chan bytefrogagent.Result, 1)
			a := bytefrogagent.New(bytefrogagent.Options{Endpoint: b.address()}, patientProgram{})
			go func() { result <- a.Run(t.Context()) }()
			theirs := b.onlySteered()
			b.Await("events", func() bool { return b.Counter("events") > 0 })
			random := rand.New(rand.NewPCG(seed, seed))
			var waiting sync.WaitGroup
			for range orders {
				if random.IntN(4) == 0 {
					b.Traces.RefuseWith([]error{nil, receivertestbed.ErrRefused}[random.IntN(2)])
				}
				name := names[random.IntN(len(names))]
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(40))*time.Millisecond)
				waiting.Go(func() {
					defer cancel()
					_, _ = agentcontroltest.Order(ctx, theirs, name, nil)
				})
				<-ctx.Done()
			}
			waiting.Wait()
			b.Traces.RefuseWith(nil)
			for _, name := range []string{"unsuspend", "unpause"} {
				o := <-order(t.Context(), theirs, name)
				require.NoError(t, o.err)
			}
			seen := b.Counter("events")
			b.Await("events again", func() bool { return b.Counter("events") > seen })
			a.Stop()
			<-result
		})
	}
}

func TestAStoppedAgentEndsItsRun(t *testing.T) {
	s := steer(t)
	s.data.write(calls(0, 5))
	s.pause()
	stopping := s.order("stop")
	s.expectTold(bytefrog.TypeUnpause, bytefrog.TypeStop)
	expectReason(t, s.order("suspend"), agentcontrol.NotNow)
	s.beat(bytefrog.ModeShuttingDown)
	s.expectDone(stopping, "tracing is over")
	s.leave()
	assert.Equal(t, callevent.End(10, callevent.CauseEnded), s.only().end(t))
}

func TestAnAgentThatIsStoppedGetsNoSuspendAtAShutdown(t *testing.T) {
	s := steer(t)
	stopping := s.order("stop")
	s.expectTold(bytefrog.TypeStop)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Shutdown()
	}()
	s.expectDone(stopping, "tracing is over")
	s.data.close()
	assert.Contains(t, s.agent.control.expectError(), "shutting down")
	s.agent.control.close()
	<-ended
}

func TestAnAgentThatDiesInTheMiddleIsLost(t *testing.T) {
	s := steer(t)
	suspending := s.order("suspend")
	s.expectTold(bytefrog.TypeSuspend)
	s.data.close()
	s.agent.control.close()
	expectReason(t, suspending, agentcontrol.Lost)
	s.awaitRuns(0)
	expectReason(t, s.order("suspend"), agentcontrol.Lost)
	expectReason(t, s.order("unpause"), agentcontrol.Lost)
}

func TestAShutdownEndsOrdersAndUnpausesThePausedProgram(t *testing.T) {
	s := steer(t)
	s.pause()
	going := s.order("unsuspend")
	s.expectDone(going, "tracing was not suspended")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Shutdown()
	}()
	s.expectTold(bytefrog.TypeUnpause, bytefrog.TypeSuspend)
	expectReason(t, s.order("pause"), agentcontrol.Lost)
	s.agent.control.send(bytefrog.DataBreak{Sequence: 0})
	assert.Contains(t, s.agent.control.expectError(), "shutting down")
	s.data.close()
	s.agent.control.close()
	<-ended
}

func TestAnOrderThatWaitsEndsWithTheReceiver(t *testing.T) {
	s := steer(t)
	pausing := s.order("pause")
	s.expectTold(bytefrog.TypePause)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Shutdown()
	}()
	expectReason(t, pausing, agentcontrol.Lost)
	s.expectTold(bytefrog.TypeUnpause, bytefrog.TypeSuspend)
	s.data.close()
	s.agent.control.close()
	<-ended
}

func TestAnAgentGetsNoCommandBeforeItHasItsBuffers(t *testing.T) {
	b := newBed(t, patiently, steerable)
	a := connect(b, 1)
	theirs := b.onlySteered()
	ctx, giveUp := context.WithCancel(context.Background())
	early := order(ctx, theirs, "suspend")
	giveUp()
	expectReason(t, early, agentcontrol.NotNow)
	suspending := order(context.Background(), theirs, "suspend")
	a.join()
	a.answerSuspend(0)
	require.NoError(t, (<-suspending).err)
	a.finish()
	b.awaitRuns(0)
}

func TestAnAgentThatIsShuttingDownGetsNoCommand(t *testing.T) {
	s := steer(t)
	s.beat(bytefrog.ModeShuttingDown)
	s.Await("the last heartbeat", func() bool { return s.theirs.Snapshot().State == "shutting_down" })
	for _, command := range []string{"suspend", "unsuspend", "pause", "unpause", "stop"} {
		expectReason(t, s.order(command), agentcontrol.NotNow)
	}
	s.leave()
}

func TestOverloadAndOrdersAreSuspendedForTogether(t *testing.T) {
	s := steer(t, func(_ *bed, c *Config) {
		c.OnOverload = OverloadSuspend
		c.Retry = receiverkit.RetryConfig{InitialInterval: time.Millisecond, MaxInterval: time.Millisecond}
	})
	s.Traces.RefuseWith(receivertestbed.ErrRefused)
	s.data.write(calls(0, 5))
	s.agent.answerSuspend(10) // for overload
	s.expectDone(s.order("suspend"), "tracing is suspended")
	s.expectDone(s.order("unsuspend"), "tracing goes on when the pipeline has accepted all held batches")
	s.expectDone(s.order("suspend"), "tracing is suspended")
	s.Traces.RefuseWith(nil)
	s.Await("the held events", func() bool { return s.events() == 10 })
	run := s.receiver.env.registry.lookup(1)
	s.Await("the overload to be over", func() bool { return run.State().Agent.Reasons&hq.Overload == 0 })
	assert.Equal(t, "suspended", s.theirs.Snapshot().State, "somebody wants it so")
	going := s.order("unsuspend")
	s.expectTold(bytefrog.TypeUnsuspend)
	s.beat(bytefrog.ModeTracing)
	s.expectDone(going, "tracing goes on")
}

func suspendedAtStart(_ *bed, c *Config) { c.Start = StartSuspended }

// connectSuspended sends hello, and receives suspend after start.
func connectSuspended(b *bed) *agent {
	a := &agent{t: b.T, address: b.address(), version: 1, control: dial(b.T, b.address())}
	a.control.send(bytefrog.Hello{Version: 1})
	m, err := a.control.receive()
	require.NoError(b.T, err)
	a.configuration, err = bytefrog.ParseAgentConfiguration(m)
	require.NoError(b.T, err)
	a.control.expectCommand(bytefrog.TypeStart)
	return a
}

func TestStartSuspendedWithoutAgentControlIsWarnedOf(t *testing.T) {
	const line = "no operator can resume them"
	b := newBed(t, patiently, suspendedAtStart)
	assert.Equal(t, 1, b.Log.FilterMessageSnippet(line).Len())
	for name, o := range map[string][]option{"steered": {steerable, suspendedAtStart}, "tracing": nil} {
		t.Run(name, func(t *testing.T) {
			assert.Zero(t, newBed(t, append([]option{patiently}, o...)...).Log.FilterMessageSnippet(line).Len())
		})
	}
}

// signsThatAnAgentIsPrepared are what an agent sends first when its buffers listen to its mode.
var signsThatAnAgentIsPrepared = map[string]func(a *agent, p *peer){
	"class report": func(a *agent, _ *peer) {
		a.control.send(bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Main"})
	},
	"event": func(_ *agent, p *peer) { p.write(append(namesOne(), calls(0, 2)...)) },
}

func TestAnAgentThatBeginsSuspendedGetsOneSuspendAtItsFirstSign(t *testing.T) {
	for name, sign := range signsThatAnAgentIsPrepared {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, patiently, steerable, suspendedAtStart, preparedBySigns)
			a := connectSuspended(b)
			p := a.join()
			a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing})
			theirs := b.onlySteered()
			b.Await("the heartbeat", func() bool { return theirs.Snapshot().State == "tracing" })
			run := b.receiver.env.registry.lookup(1)
			assert.False(t, run.State().Agent.State.IsSuspended(), "it is not prepared yet")
			sign(a, p)
			next := uint32(b.Counter("events"))
			a.control.expectCommand(bytefrog.TypeSuspend)
			b.Await("the earlier events", func() bool { next = uint32(b.Counter("events")); return name != "event" || next == 4 })
			a.control.send(bytefrog.DataBreak{Sequence: next})
			a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeSuspended})
			b.Await("it to be suspended", func() bool { return theirs.Snapshot().State == "suspended" })
			going := order(context.Background(), theirs, "unsuspend")
			a.control.expectCommand(bytefrog.TypeUnsuspend) // and no second suspend before it
			a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing})
			require.NoError(t, (<-going).err)
			p.write(append(namesOne(), calls(next, 3)...))
			a.finish()
			b.awaitRuns(0)
			seen := b.only()
			assert.Len(t, seen.events, int(next)+6)
			assert.Equal(t, []callevent.Barrier{callevent.Point(uint64(next), callevent.CauseSuspended)}, seen.breaks())
		})
	}
}

// preparedBySigns has no agent taken to be prepared without a sign of it.
func preparedBySigns(b *bed, _ *Config) { b.timing.Prepared = never }

func TestAShutdownSuspendsAnAgentThatIsNotPreparedAfterItsFirstSign(t *testing.T) {
	b := newBed(t, patiently, preparedBySigns)
	a := connect(b, 1)
	a.join()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Shutdown()
	}()
	run := b.receiver.env.registry.lookup(1)
	b.Await("the shutdown", func() bool { return run.State().Leaving })
	signsThatAnAgentIsPrepared["class report"](a, nil)
	a.answerSuspend(0)
	assert.Contains(t, a.control.expectError(), "shutting down")
	for _, p := range append(a.data, a.control) {
		p.close()
	}
	<-ended
}

func TestAnAgentSuspendedAtStartStaysSuspendedAfterTheShutdown(t *testing.T) {
	b := newBed(t, patiently, steerable, suspendedAtStart)
	a := connectSuspended(b)
	a.join()
	a.answerSuspend(0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Shutdown()
	}()
	assert.Contains(t, a.control.expectError(), "shutting down")
	for _, p := range append(a.data, a.control) {
		p.close()
	}
	<-ended
}

func TestAnOrderIsALogRecord(t *testing.T) {
	s := steer(t)
	s.theirs.SendRecord(agentcontrol.Record{
		Agent: s.theirs.ID(), Order: agentcontrol.Order{Command: "pause", By: "alice at 127.0.0.1:1"}, Took: 1500 * time.Millisecond,
		Err: agentcontrol.Errorf(agentcontrol.NotAllowed, "it pauses"),
	})
	s.leave()
	s.Await("the record", func() bool { return s.logEvents()[agentcontrol.EventName] == 1 })
	for _, r := range s.Records(agentcontrol.EventName) {
		assert.Equal(t, "Command pause: not_allowed: it pauses", r.Body().Str())
		assert.Equal(t, plog.SeverityNumberWarn, r.SeverityNumber())
		assert.Equal(t, map[string]any{
			"agent_control.agent.id": s.theirs.ID(), "agent_control.command.name": "pause", "agent_control.command.result": "not_allowed",
			"agent_control.command.by": "alice at 127.0.0.1:1", "agent_control.command.duration": "1.500", "bytefrog.run.id": int64(1),
		}, r.Attributes().AsRaw())
		service, _ := r.Resource.Attributes().Get("service.name")
		assert.Equal(t, "unknown_service:java", service.Str())
	}
}

func TestTheStateOfAnAgentIsShown(t *testing.T) {
	s := steer(t)
	s.data.write(calls(0, 5))
	s.Await("events", func() bool { return s.Counter("events") == 10 })
	now := s.theirs.Snapshot()
	assert.Equal(t, "bytefrog", now.Tracer)
	assert.Equal(t, "unknown_service:java", now.Service)
	assert.Equal(t, s.agent.control.conn.LocalAddr().String(), now.Address)
	assert.EqualValues(t, 10, now.Counters[0].Value)
	assert.False(t, now.LastSeen.Before(now.Since))
	assert.Len(t, now.Commands, 5)
	s.leave()
}

func TestAnAgentIsSeenByItsDataToo(t *testing.T) {
	s := steer(t)
	before := s.theirs.Snapshot().LastSeen
	s.data.write(calls(0, 5))
	s.Await("its data to be seen", func() bool { return s.theirs.Snapshot().LastSeen.After(before) })
	s.leave()
}
