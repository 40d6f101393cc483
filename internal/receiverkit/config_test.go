// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/receiverkit"
)

func TestErrorsNameTheSettingAndItsRange(t *testing.T) {
	for want, change := range map[string]func(*receiverkit.Config){
		"resource_attributes: ":                                  func(c *receiverkit.Config) { c.ResourceAttributes = map[string]any{"a": make(chan int)} },
		"retry.initial_interval is 0s: set it to 1ms to 1m0s":    func(c *receiverkit.Config) { c.Retry.InitialInterval = 0 },
		"retry.max_interval is 2m0s: set it to 50ms to 1m0s":     func(c *receiverkit.Config) { c.Retry.MaxInterval = 2 * time.Minute },
		"shutdown_timeout is 0s: set it to 1ms to 10m0s":         func(c *receiverkit.Config) { c.ShutdownTimeout = 0 },
		"collection_interval is 1ms: set it to 100ms to 24h0m0s": func(c *receiverkit.Config) { c.CollectionInterval = time.Millisecond },
	} {
		c := receiverkit.DefaultConfig()
		require.NoError(t, c.ValidateCommon())
		change(&c)
		assert.ErrorContains(t, c.ValidateCommon(), want)
	}
	reconnect := receiverkit.DefaultReconnect()
	require.NoError(t, receiverkit.ValidateReconnect(reconnect))
	reconnect.MaxInterval = 2 * time.Hour
	assert.EqualError(t, receiverkit.ValidateReconnect(reconnect), "reconnect.max_interval is 2h0m0s: set it to 200ms to 1h0m0s")
}

func TestErrorsOfQueuesNameTheLimitAndItsRange(t *testing.T) {
	assert.EqualError(t, (&receiverkit.LogLimits{MaxQueuedLogs: 11, MaxQueuedLogBytes: 1 << 20}).ValidateQueue(10), "limits.max_queued_logs is 11: set it to 1 to 10")
	assert.ErrorContains(t, (&receiverkit.LogLimits{MaxQueuedLogs: 1}).ValidateQueue(10), "limits.max_queued_log_bytes is 0: set it to 1048576 to ")
	assert.ErrorContains(t, (&receiverkit.SpanLimits{}).ValidateQueue(10), "limits.max_queued_spans is 0: set it to 1 to 10\nlimits.max_queued_span_bytes is 0: ")
	assert.ErrorContains(t, (&receiverkit.SampleLimits{}).ValidateQueue(10), "limits.max_queued_samples is 0: set it to 1 to 10\nlimits.max_queued_sample_bytes is 0: ")
}
