// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// deafPipeline doesn't return before it is told to, whatever its context says.
type deafPipeline struct {
	release chan struct{}
	calls   atomic.Int32
}

func (*deafPipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *deafPipeline) ConsumeTraces(context.Context, ptrace.Traces) error {
	p.calls.Add(1)
	<-p.release
	return nil
}

func (p *deafPipeline) entered() bool { return p.calls.Load() > 0 }

func quickRetries(_ *bed, c *Config) {
	c.Retry = receiverkit.RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond}
}

func TestWhatIsRefusedIsHandedOnAgainUntilItIsAccepted(t *testing.T) {
	b := newBed(t, quickly, quickRetries, withDataConnections(1))
	b.pipeline.refuseWith(errRefused)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 10)...))
	b.await("some tries", func() bool { return b.pipeline.tried() > 5 })
	b.pipeline.refuseWith(nil)
	a.finish()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 20)
	assert.Empty(t, s.twice)
	assert.Zero(t, b.metric("receiver_bytefrog_batches_dropped"))
	// Refused and accepted again: a line each, however often.
	assert.Len(t, b.said.FilterMessageSnippet("refuses call events").All(), 1)
	assert.Len(t, b.said.FilterMessageSnippet("accepts call events again").All(), 1)
	// Each hand-over was observed once: the empty batch of the end is the second.
	metric, err := b.telemetry.GetMetric("otelcol_receiver_accepted_spans")
	require.NoError(t, err)
	require.NotNil(t, metric)
	assert.EqualValues(t, s.batches, sumOf(t, b.telemetry, "receiver_accepted_spans"))
	assert.Zero(t, sumOf(t, b.telemetry, "receiver_refused_spans"))
}

func TestWhilePipelineRefusesDataIsNotRead(t *testing.T) {
	b := newBed(t, quickly, quickRetries, withDataConnections(1))
	b.pipeline.refuseWith(errRefused)
	a := connect(b, 1)
	p := a.join()
	p.bufferLittle()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = p.conn.Write(append(namesOne(), calls(0, 100_000)...))
	}()
	run := b.receiver.env.registry.lookup(1)
	b.await("the connection to wait", func() bool { return run.handover.Waiting() == 1 })
	b.await("many tries", func() bool { return b.pipeline.tried() > 100 })
	received := run.stream.Received()
	assert.Less(t, received, uint64(20_000), "a batch, and what had been read with it")
	select {
	case <-sent:
		assert.Fail(t, "the agent does not feel it")
	default:
	}
	b.pipeline.refuseWith(nil)
	<-sent
	a.finish()
	b.awaitRuns(0)
	assert.Len(t, b.pipeline.only(t).events, 200_000)
}

func TestWhatIsRefusedForGoodIsDroppedAndCountedOnce(t *testing.T) {
	b := newBed(t, quickly, quickRetries, withDataConnections(1), func(_ *bed, c *Config) { c.Batch.MaxBytes = callevent.MinBatchBytes })
	b.pipeline.refuseWith(consumererror.NewPermanent(errPermanent))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 10_000)...))
	b.await("drops", func() bool { return b.metric("receiver_bytefrog_batches_dropped") >= 3 })
	b.await("all events to be dropped", func() bool { return b.metric("receiver_bytefrog_events_dropped") == 20_000 })
	lines := b.said.FilterLevelExact(zapcore.ErrorLevel).All()
	require.Len(t, lines, 1)
	assert.Equal(t, handover.DroppedPermanent, lines[0].ContextMap()["reason"])
	b.pipeline.refuseWith(nil)
	p.write(calls(20_000, 10))
	a.finish()
	b.awaitRuns(0)
	assert.Len(t, b.pipeline.only(t).events, 20)
}

func suspendsOnOverload(_ *bed, c *Config) { c.OnOverload = OverloadSuspend }

func TestAnAgentIsSuspendedWhileThePipelineRefuses(t *testing.T) {
	b := newBed(t, quickly, quickRetries, suspendsOnOverload, withDataConnections(1), func(b *bed, _ *Config) { b.timing.answer = patience })
	b.pipeline.refuseWith(errRefused)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 20_000)...))
	a.control.expectCommand(bytefrog.TypeSuspend)
	run := b.receiver.env.registry.lookup(1)
	b.await("all to be read although the pipeline refuses", func() bool { return run.stream.Received() == 40_000 })
	b.pipeline.refuseWith(nil)
	b.await("all that was held", func() bool { return b.pipeline.events() == 40_000 })
	b.await("nothing to be held", func() bool { return !run.handover.Holds() })
	// Only the data break lets it go on.
	a.control.send(bytefrog.DataBreak{Sequence: 40_000})
	a.control.expectCommand(bytefrog.TypeUnsuspend)
	p.write(calls(40_000, 5))
	a.finish()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 40_010)
	assert.Empty(t, s.twice)
	assert.Equal(t, []callevent.Barrier{callevent.Point(40_000, callevent.CauseSuspended)}, s.breaks())
	assert.EqualValues(t, 1, b.metric("receiver_bytefrog_suspends"))
	assert.LessOrEqual(t, run.memory.Bounded(), int64(16<<10), "what was held was given back")
}

func TestATracedProgramWaitsForThePipelineForMaxBlockAtMost(t *testing.T) {
	block := func(_ *bed, c *Config) { c.MaxBlock = 100 * time.Millisecond }
	for name, options := range map[string][]option{
		"block": {block}, "suspend, a call that does not return": {block, suspendsOnOverload},
	} {
		for what, begin := range map[string]func(p *pipeline) (end func()){
			"refused": func(p *pipeline) func() {
				p.refuseWith(errRefused)
				return func() { p.refuseWith(nil) }
			},
			"a call that does not return": func(p *pipeline) func() {
				hang := make(chan struct{})
				p.mu.Lock()
				p.hang, p.deaf = hang, true
				p.mu.Unlock()
				return func() {
					close(hang)
					p.mu.Lock()
					defer p.mu.Unlock()
					p.hang = nil
				}
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				b := newBed(t, append([]option{patiently, quickRetries, withDataConnections(1)}, options...)...)
				end := begin(b.pipeline)
				a := connect(b, 1)
				p := a.join()
				p.write(append(namesOne(), calls(0, 20_000)...))
				began := time.Now()
				a.control.expectCommand(bytefrog.TypeSuspend)
				assert.Less(t, time.Since(began), patience/2)
				run := b.receiver.env.registry.lookup(1)
				b.await("all to be read, so that the program can end", func() bool { return run.stream.Received() == 40_000 })
				end()
				b.await("all that was held", func() bool { return b.pipeline.events() == 40_000 })
				a.control.send(bytefrog.DataBreak{Sequence: 40_000})
				a.control.expectCommand(bytefrog.TypeUnsuspend)
				p.write(calls(40_000, 5))
				a.finish()
				b.awaitRuns(0)
				s := b.pipeline.only(t)
				assert.Len(t, s.events, 40_010)
				assert.Empty(t, s.twice)
				assert.Equal(t, []callevent.Barrier{callevent.Point(40_000, callevent.CauseSuspended)}, s.breaks())
				assert.EqualValues(t, 1, b.metric("receiver_bytefrog_suspends"))
				assert.Zero(t, b.metric("receiver_bytefrog_events_dropped"))
			})
		}
	}
}

// A program that ends while nothing is accepted has what its agent holds read to the end.
func TestAProgramEndsThoughThePipelineAcceptsNothing(t *testing.T) {
	b := newBed(t, quickRetries, quickHeart, func(_ *bed, c *Config) { c.MaxBlock = 100 * time.Millisecond })
	b.pipeline.refuseWith(errRefused)
	a, result := playRestless(t.Context(), b)
	run := func() *run { return b.receiver.env.registry.lookup(1) }
	b.await("a suspend", func() bool { return b.metric("receiver_bytefrog_suspends") == 1 })
	a.Stop()
	r := <-result
	assert.Contains(t, []bytefrogagent.Outcome{bytefrogagent.Untraced, bytefrogagent.Completed}, r.Outcome, "%v: %s (%v)", r.Outcome, r.Reason, r.Err)
	assert.NotNil(t, run(), "what it sent is held")
	b.pipeline.refuseWith(nil)
	b.awaitRuns(0)
	assert.Zero(t, b.metric("receiver_bytefrog_events_dropped"))
	assert.EqualValues(t, b.metric("receiver_bytefrog_events"), b.pipeline.events())
}

func TestASuspendThatIsNotAnsweredLeavesAnInterval(t *testing.T) {
	b := newBed(t, quickly, quickRetries, suspendsOnOverload, withDataConnections(1))
	b.pipeline.refuseWith(errRefused)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	a.control.expectCommand(bytefrog.TypeSuspend)
	b.pipeline.refuseWith(nil)
	a.control.expectCommand(bytefrog.TypeUnsuspend)
	p.write(calls(130, 50))
	a.finish()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 200)
	assert.Equal(t, []callevent.Barrier{callevent.Interval(100, 130, callevent.CauseSuspended)}, s.breaks())
}

func TestWhatIsHeldIsBoundedAndLeavesMemoryForNames(t *testing.T) {
	b := newBed(t, quickly, quickRetries, suspendsOnOverload, func(_ *bed, c *Config) {
		c.Limits.MaxRunMemory = minRunMemory
		c.Batch.MaxBytes = callevent.MinBatchBytes
	})
	b.pipeline.refuseWith(errRefused)
	a := connect(b, 1)
	p := a.join()
	p.bufferLittle()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = p.conn.Write(append(namesOne(), calls(0, 100_000)...))
	}()
	run := b.receiver.env.registry.lookup(1)
	a.control.expectCommand(bytefrog.TypeSuspend)
	b.await("the connection to wait for memory", func() bool {
		return run.memory.Bounded() > minRunMemory/2 && run.handover.Waiting() > 0
	})
	assert.LessOrEqual(t, run.memory.Bounded(), int64(minRunMemory))
	assert.Less(t, run.stream.Received(), uint64(150_000))
	named := run.memory.Bounded()
	names := a.join()
	for id := range uint32(100) {
		names.send(bytefrog.MapMethod{Method: 100 + id, Signature: fmt.Sprint(id, strings.Repeat("x", 1000))})
	}
	b.await("names", func() bool { return run.memory.Bounded() > named+100*1000 })
	assert.False(t, run.isLeaving())
	b.pipeline.refuseWith(nil)
	<-sent
	a.finish()
	b.awaitRuns(0)
	assert.Len(t, b.pipeline.only(t).events, 200_000)
}

func TestAShutdownWhileBatchesAreHeldDropsAndCountsThem(t *testing.T) {
	b := newBed(t, quickly, quickRetries, suspendsOnOverload, withDataConnections(1), func(_ *bed, c *Config) {
		c.ShutdownTimeout = 300 * time.Millisecond
	})
	b.pipeline.refuseWith(errRefused)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 20_000)...))
	a.answerSuspend(40_000)
	run := b.receiver.env.registry.lookup(1)
	b.await("events", func() bool { return run.stream.Received() == 40_000 })
	require.NoError(t, b.component().Shutdown(context.Background()))
	assert.EqualValues(t, 40_000, b.metric("receiver_bytefrog_events_dropped"))
}
