// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// clock is a protocol without peers. It delivers a log record when its test asks for one,
// and metrics of one point.
type clock struct {
	run     *receiverkit.Run
	logs    *handover.Logs[string]
	dropped atomic.Int64
	// failing is the error of Start. staying holds the goroutine after Serving has ended.
	failing error
	staying <-chan struct{}
	// steps are the calls in order.
	steps []string
}

func (c *clock) Start(_ context.Context, run *receiverkit.Run) error {
	c.run = run
	c.steps = append(c.steps, "start")
	c.logs = receiverkit.NewLogs(run, receiverkit.LogLimits{MaxQueuedLogs: 10, MaxQueuedLogBytes: 1 << 20}, handover.QueueSettings[string, plog.Logs]{
		MaxAtOnce: 1,
		Size:      func(text *string) (records, bytes int) { return 1, len(*text) },
		Make: func(texts []string) plog.Logs {
			logs := plog.NewLogs()
			run.AppendLogs(logs, pcommon.NewResource()).AppendEmpty().Body().SetStr(texts[0])
			return logs
		},
		Dropped: func(n int, _ string) { c.dropped.Add(int64(n)) },
	})
	receiverkit.NewMetrics(run, handover.MetricsSettings[int64]{
		Living: func() []int64 { return []int64{1} },
		Metrics: func(values []int64) pmetric.Metrics {
			metrics := pmetric.NewMetrics()
			metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().
				SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(values[0])
			return metrics
		},
		MaxEnded: 1, Points: func(*int64) int { return 1 }, What: "clocks",
		Dropped: func(int, string) {},
	})
	if c.failing != nil {
		return c.failing
	}
	run.Go(func() {
		<-run.Serving.Done()
		if c.staying != nil {
			<-c.staying
		}
		c.steps = append(c.steps, "goroutine")
	})
	return nil
}

func (c *clock) Stop() {
	if !c.run.IsStopping() {
		panic("Stop was called before the end of Serving")
	}
}

func (c *clock) Close(context.Context) error {
	c.steps = append(c.steps, "close")
	return errClose
}

var errClose = errors.New("closed with an error")

// bed is the bed of a clock.
type bed struct {
	*receivertestbed.Bed
	*clock
	receiver *receiverkit.Receiver
}

func newBed(t *testing.T, shutdownTimeout time.Duration) *bed {
	b := &bed{Bed: receivertestbed.New(t, component.MustNewType("clock")), clock: &clock{}}
	config := receiverkit.DefaultConfig()
	config.ShutdownTimeout = shutdownTimeout
	config.Retry = receiverkit.RetryConfig{InitialInterval: time.Millisecond, MaxInterval: time.Millisecond}
	require.NoError(t, config.ValidateCommon())
	kit, err := receiverkit.New(b.Settings, &config, receiverkit.Names{Format: "clock", Scope: "clocks"})
	require.NoError(t, err)
	b.receiver = &receiverkit.Receiver{Kit: kit, Protocol: b.clock}
	b.Use(b.receiver)
	return b
}

func (b *bed) start() error { return b.Component().Start(b.T.Context(), b.Host) }

func (b *bed) shutdown() error { return b.Component().Shutdown(context.Background()) }

func TestAShutdownDeliversEverythingAfterTheLastGoroutine(t *testing.T) {
	b := newBed(t, receivertestbed.Patience)
	require.NoError(t, b.start())
	b.Logs.RefuseWith(receivertestbed.ErrRefused)
	require.True(t, b.logs.Enqueue("tick"))
	b.Await("a refusal", func() bool { return b.Logs.Calls().Returned > 0 })
	b.Logs.RefuseWith(nil)
	require.ErrorIs(t, b.shutdown(), errClose)
	assert.Equal(t, []string{"start", "goroutine", "close"}, b.steps)
	records := b.Records("")
	require.Len(t, records, 1)
	assert.Equal(t, "tick", records[0].Body().Str())
	assert.Equal(t, "clocks", records[0].Scope.Name())
	assert.Equal(t, receivertestbed.Version, records[0].Scope.Version())
	assert.Equal(t, 1, b.Metrics.DataPointCount(), "the last collection")
	assert.Zero(t, b.dropped.Load())
}

func TestOwnMetricsHaveTheTransportOfTheData(t *testing.T) {
	for names, want := range map[receiverkit.Names]string{{Format: "clock"}: "tcp", {Format: "clock", Transport: "file"}: "file"} {
		b := newBed(t, receivertestbed.Patience)
		config := receiverkit.DefaultConfig()
		kit, err := receiverkit.New(b.Settings, &config, names)
		require.NoError(t, err)
		b.receiver.Kit = kit
		require.NoError(t, b.start())
		require.True(t, b.logs.Enqueue("tick"))
		require.ErrorIs(t, b.shutdown(), errClose)
		points := telemetrytest.Points(t, b.Telemetry, "otelcol_receiver_accepted_log_records")
		assert.Equal(t, map[string]int64{"{transport=" + want + "}": 1}, points)
	}
}

func TestAShutdownDropsAfterItsTime(t *testing.T) {
	b := newBed(t, time.Millisecond)
	b.Kit().Overtime = receivertestbed.Patience
	require.NoError(t, b.start())
	b.Logs.Hang(false)
	require.True(t, b.logs.Enqueue("tick"))
	require.Equal(t, errClose.Error(), b.shutdown().Error())
	assert.EqualValues(t, 1, b.dropped.Load())
	assert.ErrorIs(t, b.run.Delivering.Err(), context.Canceled)
}

func TestAShutdownThatDoesNotEndIsAnError(t *testing.T) {
	b := newBed(t, time.Millisecond)
	b.Kit().Overtime = time.Millisecond
	stay := make(chan struct{})
	b.staying = stay
	require.NoError(t, b.start())
	err := b.shutdown()
	assert.ErrorContains(t, err, "expected the shutdown to end within shutdown_timeout (1ms) and 1ms: a pipeline or a peer has not returned")
	assert.ErrorIs(t, err, errClose)
	close(stay)
}

func TestTheTimeOfPeersEndsBeforeThatOfTheShutdown(t *testing.T) {
	b := newBed(t, 10*receivertestbed.Patience)
	b.Kit().PeerTime = time.Millisecond
	left := make(chan struct{})
	b.staying = left
	require.NoError(t, b.start())
	run := b.run
	go func() {
		defer close(left)
		<-run.Leaving.Done()
		assert.NoError(t, run.Delivering.Err())
		assert.ErrorIs(t, context.Cause(run.Leaving), receiverkit.ErrPeerTime)
	}()
	require.ErrorIs(t, b.shutdown(), errClose)
}

func TestAFailedStartEndsServingAndFreesEverything(t *testing.T) {
	b := newBed(t, time.Millisecond)
	b.failing = errors.New("no port is free")
	require.Equal(t, b.failing, b.start())
	assert.Error(t, b.run.Serving.Err())
	require.ErrorIs(t, b.shutdown(), errClose)
	assert.Equal(t, []string{"start", "close"}, b.steps)
}

func TestAReceiverThatWasNotStartedIsClosed(t *testing.T) {
	b := newBed(t, time.Millisecond)
	require.ErrorIs(t, b.shutdown(), errClose)
	assert.Equal(t, []string{"close"}, b.steps)
}

func TestASignalWithoutAPipelineHasNoOutput(t *testing.T) {
	b := newBed(t, time.Millisecond)
	b.Next.Logs, b.Next.Metrics = nil, nil
	require.NoError(t, b.start())
	assert.Nil(t, b.logs)
	require.ErrorIs(t, b.shutdown(), errClose)
	assert.Zero(t, b.Metrics.DataPointCount())
}
