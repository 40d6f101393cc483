// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

func TestWhatAgentsSayOfThemselvesBecomesLogRecords(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) { c.ServiceName = "shop" })
	a := connect(b, 1)
	p := a.join()
	p.send(bytefrog.Marker{Time: 40, Sequence: 0, Key: "checkout", Value: "größer"})
	b.awaitReceived(1)
	zero := b.receiver.env.registry.lookup(1).stream.clock.zero
	a.control.send(
		bytefrog.Heartbeat{Mode: bytefrog.ModeTracing},
		bytefrog.Heartbeat{Mode: bytefrog.ModeTracing},
		bytefrog.ClassReport{Result: bytefrog.TypeClassTransformed, Class: "demo/Shop"},
		bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Other"},
		bytefrog.ClassReport{Result: bytefrog.TypeClassTransformFailed, Class: "demo/Broken$1"},
	)
	a.finish()
	b.awaitRuns(0)
	b.await("the log records", func() bool { return b.logEvents()[eventAgentLeft] == 1 })
	got := map[string]plog.LogRecord{}
	modes := 0
	b.eachLog(func(resource plog.ResourceLogs, r plog.LogRecord) {
		assert.Equal(t, "shop", resource.Resource().Attributes().AsRaw()[attributeServiceName])
		assert.Equal(t, int64(1), r.Attributes().AsRaw()[attributeRunID])
		if r.EventName() == eventAgentMode {
			modes++
			if modes == 1 {
				return
			}
		}
		got[r.EventName()] = r
	})
	assert.Equal(t, 2, modes, "initializing to tracing, tracing to shutting down")
	want := map[string]struct {
		severity   plog.SeverityNumber
		body       string
		attributes map[string]any
	}{
		eventAgentStarted: {plog.SeverityNumberInfo, "The agent was started", map[string]any{
			attributeVersion: int64(1), attributePeer: a.control.conn.LocalAddr().String()}},
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
	assert.Equal(t, zero.Add(40*time.Millisecond).UnixNano(), got[eventMarker].Timestamp().AsTime().UnixNano())
}

// sinkOf is a log sink in front of next, with a queue of size records.
func sinkOf(t *testing.T, b *bed, next func(context.Context, plog.Logs) error, size int) *logSink {
	t.Helper()
	consumer, err := newLogsConsumer(next)
	require.NoError(t, err)
	env := *b.receiver.env
	config := *env.config
	config.Limits.MaxQueuedLogs = size
	config.Retry = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 2 * time.Millisecond}
	env.config = &config
	return newLogSink(&env, consumer)
}

func TestARefusingLogsPipelineHoldsNobodyUp(t *testing.T) {
	b := newBed(t)
	accept := make(chan struct{})
	sink := new(consumertest.LogsSink)
	s := sinkOf(t, b, func(ctx context.Context, logs plog.Logs) error {
		select {
		case <-accept:
			return sink.ConsumeLogs(ctx, logs)
		default:
			return errRefused
		}
	}, 10)
	from := &origin{run: 1}
	from.resource, _ = newResource(b.receiver.env.config, [16]byte{1})
	for range 100 {
		s.add(logRecord{origin: from, event: "x"})
	}
	dropped := b.metric("receiver_bytefrog_log_records_dropped")
	assert.GreaterOrEqual(t, dropped, int64(80))
	close(accept)
	s.stop()
	assert.EqualValues(t, 100-dropped, sink.LogRecordCount())
	// After its end it takes nothing.
	s.add(logRecord{origin: from, event: "x"})
	assert.EqualValues(t, dropped+1, b.metric("receiver_bytefrog_log_records_dropped"))
}

func TestLogRecordsThatAreRefusedForGoodAreDroppedAndCounted(t *testing.T) {
	b := newBed(t)
	s := sinkOf(t, b, func(context.Context, plog.Logs) error { return consumererror.NewPermanent(errPermanent) }, 10)
	from := &origin{run: 1}
	from.resource, _ = newResource(b.receiver.env.config, [16]byte{1})
	s.add(logRecord{origin: from, event: "x"})
	b.await("the drop", func() bool { return b.metric("receiver_bytefrog_log_records_dropped") == 1 })
	s.add(logRecord{origin: from, event: "x"})
	s.stop()
	assert.EqualValues(t, 2, b.metric("receiver_bytefrog_log_records_dropped"))
	assert.Len(t, b.said.FilterMessageSnippet("Log records are dropped").All(), 1)
}
