// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
)

func TestMessagesOfAgentsBecomeLogRecords(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) { c.ServiceName = "shop" })
	a := connect(b, 1)
	joined := time.Now()
	p := a.join()
	p.send(bytefrog.Marker{Time: 40, Sequence: 0, Key: "checkout", Value: "größer"})
	b.awaitReceived(1)
	opened := b.receiver.env.registry.lookup(1).State().Opened
	a.control.send(
		bytefrog.Heartbeat{Mode: bytefrog.ModeTracing},
		bytefrog.Heartbeat{Mode: bytefrog.ModeTracing},
		bytefrog.ClassReport{Result: bytefrog.TypeClassTransformed, Class: "demo/Shop"},
		bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Other"},
		bytefrog.ClassReport{Result: bytefrog.TypeClassTransformFailed, Class: "demo/Broken$1"},
	)
	a.finish()
	b.awaitRuns(0)
	b.Await("the log records", func() bool { return b.logEvents()[eventAgentLeft] == 1 })
	got := map[string]plog.LogRecord{}
	modes := 0
	for _, r := range b.Records("") {
		assert.Equal(t, "shop", r.Resource.Attributes().AsRaw()[attributeServiceName])
		assert.Equal(t, int64(1), r.Attributes().AsRaw()[attributeRunID])
		if r.EventName() == eventAgentMode {
			modes++
			if modes == 1 {
				continue
			}
		}
		got[r.EventName()] = r.LogRecord
	}
	assert.Equal(t, 2, modes, "initializing to tracing, tracing to shutting down")
	want := map[string]struct {
		severity   plog.SeverityNumber
		body       string
		attributes map[string]any
	}{
		eventAgentStarted: {plog.SeverityNumberInfo, "The agent was started", map[string]any{
			attributeVersion: int64(1), attributePeerAddress: "127.0.0.1", attributePeerPort: int64(a.control.conn.LocalAddr().(*net.TCPAddr).Port)}},
		eventMarker: {plog.SeverityNumberInfo, "checkout: größer", map[string]any{
			attributeMarkerKey: "checkout", attributeMarkerValue: "größer", attributeSequence: int64(0)}},
		eventClassTransformed: {plog.SeverityNumberDebug, "class transformed: demo/Shop", map[string]any{attributeClass: "demo.Shop"}},
		eventClassIgnored:     {plog.SeverityNumberDebug, "class ignored: demo/Other", map[string]any{attributeClass: "demo.Other"}},
		eventClassFailed:      {plog.SeverityNumberWarn, "class transform failed: demo/Broken$1", map[string]any{attributeClass: "demo.Broken$1"}},
		eventAgentMode: {plog.SeverityNumberInfo, "The agent is shutting down", map[string]any{
			attributeMode: "shutting_down", attributeModeBefore: "tracing"}},
		eventAgentLeft: {plog.SeverityNumberInfo, "the agent ended the run", map[string]any{attributeCause: "ended"}},
	}
	assert.Len(t, got, len(want))
	for event, w := range want {
		r, ok := got[event]
		require.True(t, ok, event)
		assert.Equal(t, w.severity, r.SeverityNumber(), event)
		assert.Equal(t, w.body, r.Body().Str(), event)
		w.attributes[attributeRunID] = int64(1)
		assert.Equal(t, w.attributes, r.Attributes().AsRaw(), event)
	}
	assert.WithinRange(t, got[eventMarker].Timestamp().AsTime(), opened.Add(40*time.Millisecond), joined.Add(40*time.Millisecond))
}

// sinkOf is a log sink in front of next, with a queue of so many records and bytes.
func sinkOf(t *testing.T, b *bed, next func(context.Context, plog.Logs) error, size, bytes int) *logSink {
	t.Helper()
	sink, err := consumer.NewLogs(next)
	require.NoError(t, err)
	config := *b.receiver.env.config
	config.Limits.MaxQueuedLogs, config.Limits.MaxQueuedLogBytes = size, bytes
	config.Retry = receiverkit.RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 2 * time.Millisecond}
	return environmentWithoutListener(t, b.Settings, &config, sharedreceiver.Signals{Logs: sink}).logs
}

// logsGate is a pipeline for logs that refuses until it is opened.
type logsGate struct {
	consumertest.LogsSink
	tries  atomic.Int64
	opened atomic.Bool
	// largest is the largest sum of bytes of bodies in a call.
	largest atomic.Int64
}

func (g *logsGate) consume(ctx context.Context, logs plog.Logs) error {
	g.tries.Add(1)
	if !g.opened.Load() {
		return receivertestbed.ErrRefused
	}
	bodies := 0
	for _, resource := range logs.ResourceLogs().All() {
		for _, r := range resource.ScopeLogs().At(0).LogRecords().All() {
			bodies += len(r.Body().Str())
		}
	}
	g.largest.Store(max(g.largest.Load(), int64(bodies)))
	return g.ConsumeLogs(ctx, logs)
}

func originOne(b *bed) *origin {
	from := &origin{run: 1}
	from.resource = newResource(b.receiver.env.config, [16]byte{1})
	return from
}

func TestARefusingLogsPipelineHoldsUpNoAgent(t *testing.T) {
	b := newBed(t)
	next := &logsGate{}
	s := sinkOf(t, b, next.consume, 10, mib)
	record := logRecord{origin: originOne(b), event: "x"}
	s.Enqueue(record)
	// From then on nothing is taken out of the queue.
	b.Await("the record to be refused", func() bool { return next.tries.Load() > 0 })
	for range 100 {
		s.Enqueue(record)
	}
	assert.EqualValues(t, 90, b.Counter("log_records_dropped"))
	assert.Len(t, b.Log.FilterMessageSnippet("queue of log records is full").All(), 1, "one line for a burst")
	next.opened.Store(true)
	b.Await("the others", func() bool { return next.LogRecordCount() == 11 })
	s.Close()
	assert.Equal(t, 11, next.LogRecordCount())
	assert.Zero(t, s.Bytes())
	// After its end it takes nothing.
	s.Enqueue(record)
	assert.EqualValues(t, 91, b.Counter("log_records_dropped"))
}

func TestLogRecordsThatWaitHaveBoundedMemory(t *testing.T) {
	b := newBed(t)
	next := &logsGate{}
	const limit = 4 * mib
	s := sinkOf(t, b, next.consume, 10_000, limit)
	record := logRecord{origin: originOne(b), event: "x", body: strings.Repeat("x", 64*kib), attributes: []logAttribute{text("y", "")}}
	for range 4000 {
		s.Enqueue(record)
		require.LessOrEqual(t, s.Bytes(), limit)
	}
	dropped := b.Counter("log_records_dropped")
	assert.EqualValues(t, 4000-limit/record.size(), dropped, "all that was taken still waits: nothing was accepted")
	next.opened.Store(true)
	s.Close()
	assert.EqualValues(t, 4000-dropped, next.LogRecordCount())
	assert.LessOrEqual(t, next.largest.Load(), int64(mib+len(record.body)))
	assert.Zero(t, s.Bytes())
}

func TestLogRecordsThatAreRefusedForGoodAreDroppedAndCounted(t *testing.T) {
	b := newBed(t)
	s := sinkOf(t, b, func(context.Context, plog.Logs) error { return consumererror.NewPermanent(errPermanent) }, 10, mib)
	from := originOne(b)
	s.Enqueue(logRecord{origin: from, event: "x"})
	b.Await("the drop", func() bool { return b.Counter("log_records_dropped") == 1 })
	s.Enqueue(logRecord{origin: from, event: "x"})
	s.Close()
	assert.EqualValues(t, 2, b.Counter("log_records_dropped"))
	assert.Len(t, b.Log.FilterMessageSnippet("The pipeline refuses log records with a permanent error").All(), 1)
}

func TestDisabledLogRecordsAreNotSent(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) {
		c.Events.BytefrogMarker.Enabled, c.Events.BytefrogAgentMode.Enabled = false, false
	})
	a := connect(b, 1)
	p := a.join()
	p.send(bytefrog.Marker{Time: 40, Sequence: 0, Key: "checkout"})
	b.awaitReceived(1)
	a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing})
	a.finish()
	b.awaitRuns(0)
	b.Await("the log records", func() bool { return b.logEvents()[eventAgentLeft] == 1 })
	assert.Equal(t, map[string]int{eventAgentStarted: 1, eventAgentLeft: 1}, b.logEvents())
}

// environmentWithoutListener returns the environment of a receiver that does not listen.
func environmentWithoutListener(t testing.TB, settings receiver.Settings, config *Config, next sharedreceiver.Signals) *environment {
	t.Helper()
	r, err := newReceiver(settings, config)
	require.NoError(t, err)
	env := r.Protocol.(*bytefrogReceiver).env
	env.open(r.Kit.NewRun(context.Background(), componenttest.NewNopHost(), next))
	return env
}
