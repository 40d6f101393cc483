// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

func TestASessionIsNotReadWhileCallEventsAreRefused(t *testing.T) {
	r := newRelay(t, captured(t, "cyg1"), lttnglive.RelayOptions{})
	b := unstartedBed(t, reading(r.address()), withoutLogs)
	b.pipeline.refuseWith(errRefused)
	require.NoError(t, b.component().Start(context.Background(), b.host))
	t.Cleanup(b.shutdown)
	b.await("tries", func() bool { return b.pipeline.tried() > 5 })
	assert.Equal(t, 1, b.said.FilterMessageSnippet("The pipeline refuses call events").Len())
	b.pipeline.refuseWith(nil)
	b.await("call events", func() bool { return b.pipeline.events() == 7859 })
	b.awaitSaid("The pipeline accepts call events again")
	b.shutdown()
	s := b.pipeline.only(t)
	assert.Empty(t, s.twice)
	s.inOrder(t)
	assert.Positive(t, b.metric("receiver_lttng_live_handover_retries"))
	assert.Zero(t, b.metric("receiver_lttng_live_batches_dropped"))
	assert.Zero(t, b.metric("receiver_lttng_live_events_late"), "waiting is no reason to overtake a stream")
}

func TestPermanentlyRefusedBatchesAreDroppedAndCounted(t *testing.T) {
	r := newRelay(t, captured(t, "cygok"), lttnglive.RelayOptions{})
	b := unstartedBed(t, reading(r.address()))
	b.pipeline.refuseWith(consumererror.NewPermanent(errRefused))
	require.NoError(t, b.component().Start(context.Background(), b.host))
	t.Cleanup(b.shutdown)
	b.await("the count", func() bool { return b.metric("receiver_lttng_live_call_events_dropped") == 218 })
	assert.Equal(t, 1, b.said.FilterMessageSnippet("The receiver drops batches of call events").Len())
	b.awaitRecords(245)
}

func TestRefusedLogRecordsDoNotDelayCalls(t *testing.T) {
	r := newRelay(t, captured(t, "cyg1"), lttnglive.RelayOptions{})
	b := unstartedBed(t, reading(r.address()), func(_ *bed, c *Config) {
		c.Limits.MaxQueuedLogs = 2500
		c.ShutdownTimeout = 50 * time.Millisecond
	})
	b.logs.refuseWith(errRefused)
	require.NoError(t, b.component().Start(context.Background(), b.host))
	t.Cleanup(b.shutdown)
	b.await("call events", func() bool { return b.pipeline.events() == 7859 })
	b.await("the end", func() bool { return b.said.FilterMessage("The session was closed").Len() == 1 })
	b.shutdown()
	assert.Zero(t, b.logs.LogRecordCount())
	assert.EqualValues(t, 7886, b.metric("receiver_lttng_live_log_records_dropped"))
	assert.Equal(t, 1, b.said.FilterMessageSnippet("their queue is full").Len())
}

func TestWithoutSpansLogRecordsWait(t *testing.T) {
	r := newRelay(t, captured(t, "cyg1"), lttnglive.RelayOptions{})
	b := unstartedBed(t, reading(r.address()), withoutTraces, func(_ *bed, c *Config) { c.Limits.MaxQueuedLogs = 2500 })
	b.logs.refuseWith(errRefused)
	require.NoError(t, b.component().Start(context.Background(), b.host))
	t.Cleanup(b.shutdown)
	b.await("tries", func() bool { b.logs.mu.Lock(); defer b.logs.mu.Unlock(); return b.logs.tries > 5 })
	b.logs.refuseWith(nil)
	b.awaitRecords(7886)
	assert.Zero(t, b.metric("receiver_lttng_live_log_records_dropped"))
}
