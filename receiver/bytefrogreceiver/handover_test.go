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
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// deafPipeline does not return before release, even after the end of the context.
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

func TestARefusedBatchIsSentAgainUntilItIsAccepted(t *testing.T) {
	b := newBed(t, quickly, quickRetries, withDataConnections(1))
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 10)...))
	b.Await("some tries", func() bool { return b.Traces.Calls().Returned > 5 })
	b.Traces.RefuseWith(nil)
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.Len(t, s.events, 20)
	assert.Empty(t, s.twice)
	assert.Zero(t, b.Counter("batches_dropped"))
	// Refused and accepted again: a line each, however often.
	assert.Len(t, b.Log.FilterMessageSnippet("refuses call events").All(), 1)
	assert.Len(t, b.Log.FilterMessageSnippet("accepts call events again").All(), 1)
	// Each hand-over was observed once: the empty batch of the end is the second.
	metric, err := b.Telemetry.GetMetric("otelcol_receiver_accepted_spans")
	require.NoError(t, err)
	require.NotNil(t, metric)
	assert.EqualValues(t, s.batches, sumOf(t, b.Telemetry, "receiver_accepted_spans"))
	assert.Zero(t, sumOf(t, b.Telemetry, "receiver_refused_spans"))
}

func TestWhilePipelineRefusesDataIsNotRead(t *testing.T) {
	b := newBed(t, quickly, quickRetries, withDataConnections(1))
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	p := a.join()
	p.bufferLittle()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = p.conn.Write(append(namesOne(), calls(0, 50_000)...))
	}()
	run := b.receiver.env.registry.lookup(1)
	b.Await("the connection to wait", func() bool { return run.State().Waiting == 1 })
	b.Await("many tries", func() bool { return b.Traces.Calls().Returned > 100 })
	received := run.State().Events
	assert.Less(t, received, uint64(20_000), "a batch, and data that was read together with it")
	select {
	case <-sent:
		assert.Fail(t, "the agent does not feel it")
	default:
	}
	b.Traces.RefuseWith(nil)
	<-sent
	a.finish()
	b.awaitRuns(0)
	assert.Len(t, b.only().events, 100_000)
}

func TestABatchWithAPermanentErrorIsDroppedAndCountedOnce(t *testing.T) {
	b := newBed(t, quickly, quickRetries, withDataConnections(1), func(_ *bed, c *Config) { c.Batch.MaxBytes = callevent.MinBatchBytes })
	b.Traces.RefuseWith(consumererror.NewPermanent(errPermanent))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 10_000)...))
	b.Await("drops", func() bool { return b.Counter("batches_dropped") >= 3 })
	b.Await("all events to be dropped", func() bool { return b.Counter("events_dropped") == 20_000 })
	lines := b.Log.FilterLevelExact(zapcore.ErrorLevel).All()
	require.Len(t, lines, 1)
	assert.Equal(t, handover.DroppedPermanent, lines[0].ContextMap()["reason"])
	b.Traces.RefuseWith(nil)
	p.write(calls(20_000, 10))
	a.finish()
	b.awaitRuns(0)
	assert.Len(t, b.only().events, 20)
}

func suspendsOnOverload(_ *bed, c *Config) { c.OnOverload = OverloadSuspend }

func TestAnAgentIsSuspendedWhileThePipelineRefuses(t *testing.T) {
	b := newBed(t, quickly, quickRetries, suspendsOnOverload, withDataConnections(1), func(b *bed, _ *Config) { b.timing.Answer = receivertestbed.Patience })
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 20_000)...))
	a.control.expectCommand(bytefrog.TypeSuspend)
	run := b.receiver.env.registry.lookup(1)
	b.Await("all to be read although the pipeline refuses", func() bool { return run.State().Events == 40_000 })
	b.Traces.RefuseWith(nil)
	b.Await("all that was held", func() bool { return b.events() == 40_000 })
	b.Await("nothing to be held", func() bool { return !run.State().Holds })
	// Only the data break lets it go on.
	a.control.send(bytefrog.DataBreak{Sequence: 40_000})
	a.control.expectCommand(bytefrog.TypeUnsuspend)
	p.write(calls(40_000, 5))
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.Len(t, s.events, 40_010)
	assert.Empty(t, s.twice)
	assert.Equal(t, []callevent.Barrier{callevent.Point(40_000, callevent.CauseSuspended)}, s.breaks())
	assert.EqualValues(t, 1, b.Counter("suspends"))
	assert.LessOrEqual(t, run.Memory().Bounded(), int64(16<<10), "the memory of held batches was returned")
}

func TestATracedProgramWaitsForThePipelineForMaxBlockAtMost(t *testing.T) {
	block := func(_ *bed, c *Config) { c.MaxBlock = 100 * time.Millisecond }
	for name, options := range map[string][]option{
		"block": {block}, "suspend, a call that does not return": {block, suspendsOnOverload},
	} {
		for what, begin := range map[string]func(p *receivertestbed.Traces) (end func()){
			"refused": func(p *receivertestbed.Traces) func() {
				p.RefuseWith(receivertestbed.ErrRefused)
				return func() { p.RefuseWith(nil) }
			},
			"a call that does not return": func(p *receivertestbed.Traces) func() { return p.Hang(true) },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				b := newBed(t, append([]option{patiently, quickRetries, withDataConnections(1)}, options...)...)
				end := begin(b.Traces)
				a := connect(b, 1)
				p := a.join()
				p.write(append(namesOne(), calls(0, 20_000)...))
				began := time.Now()
				a.control.expectCommand(bytefrog.TypeSuspend)
				assert.Less(t, time.Since(began), receivertestbed.Patience/2)
				run := b.receiver.env.registry.lookup(1)
				b.Await("all to be read, so that the program can end", func() bool { return run.State().Events == 40_000 })
				end()
				b.Await("all that was held", func() bool { return b.events() == 40_000 })
				a.control.send(bytefrog.DataBreak{Sequence: 40_000})
				a.control.expectCommand(bytefrog.TypeUnsuspend)
				p.write(calls(40_000, 5))
				a.finish()
				b.awaitRuns(0)
				s := b.only()
				assert.Len(t, s.events, 40_010)
				assert.Empty(t, s.twice)
				assert.Equal(t, []callevent.Barrier{callevent.Point(40_000, callevent.CauseSuspended)}, s.breaks())
				assert.EqualValues(t, 1, b.Counter("suspends"))
				assert.Zero(t, b.Counter("events_dropped"))
			})
		}
	}
}

// A program that ends while nothing is accepted has what its agent holds read to the end.
func TestAProgramEndsThoughThePipelineAcceptsNothing(t *testing.T) {
	b := newBed(t, quickRetries, quickHeart, func(_ *bed, c *Config) { c.MaxBlock = 100 * time.Millisecond })
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a, result := playRestless(t.Context(), b)
	run := func() *session.Session { return b.receiver.env.registry.lookup(1) }
	b.Await("a suspend", func() bool { return b.Counter("suspends") == 1 })
	a.Stop()
	r := <-result
	assert.Contains(t, []bytefrogagent.Outcome{bytefrogagent.Untraced, bytefrogagent.Completed}, r.Outcome, "%v: %s (%v)", r.Outcome, r.Reason, r.Err)
	assert.NotNil(t, run(), "its batches are held")
	b.Traces.RefuseWith(nil)
	b.awaitRuns(0)
	assert.Zero(t, b.Counter("events_dropped"))
	assert.EqualValues(t, b.Counter("events"), b.events())
}

func TestAnUnansweredSuspendBecomesAnInterval(t *testing.T) {
	b := newBed(t, quickly, quickRetries, suspendsOnOverload, withDataConnections(1))
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 50)...))
	a.control.expectCommand(bytefrog.TypeSuspend)
	b.Traces.RefuseWith(nil)
	a.control.expectCommand(bytefrog.TypeUnsuspend)
	p.write(calls(130, 50))
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.Len(t, s.events, 200)
	assert.Equal(t, []callevent.Barrier{callevent.Interval(100, 130, callevent.CauseSuspended)}, s.breaks())
}

func TestHeldBatchesAreBoundedAndLeaveMemoryForNames(t *testing.T) {
	b := newBed(t, quickly, quickRetries, suspendsOnOverload, func(_ *bed, c *Config) {
		c.Limits.MaxRunMemory = minRunMemory
		c.Batch.MaxBytes = callevent.MinBatchBytes
	})
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
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
	b.Await("the connection to wait for memory", func() bool {
		return run.Memory().Bounded() > minRunMemory/2 && run.State().Waiting > 0
	})
	assert.LessOrEqual(t, run.Memory().Bounded(), int64(minRunMemory))
	assert.Less(t, run.State().Events, uint64(150_000))
	named := run.Memory().Bounded()
	names := a.join()
	for id := range uint32(100) {
		names.send(bytefrog.MapMethod{Method: 100 + id, Signature: fmt.Sprint(id, strings.Repeat("x", 1000))})
	}
	b.Await("names", func() bool { return run.Memory().Bounded() > named+100*1000 })
	assert.False(t, run.State().Leaving)
	b.Traces.RefuseWith(nil)
	<-sent
	a.finish()
	b.awaitRuns(0)
	assert.Len(t, b.only().events, 200_000)
}

func TestAShutdownWhileBatchesAreHeldDropsAndCountsThem(t *testing.T) {
	b := newBed(t, quickly, quickRetries, suspendsOnOverload, withDataConnections(1), func(_ *bed, c *Config) {
		c.ShutdownTimeout = 300 * time.Millisecond
	})
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 20_000)...))
	a.answerSuspend(40_000)
	run := b.receiver.env.registry.lookup(1)
	b.Await("events", func() bool { return run.State().Events == 40_000 })
	require.NoError(t, b.Component().Shutdown(context.Background()))
	assert.EqualValues(t, 40_000, b.Counter("events_dropped"))
}
