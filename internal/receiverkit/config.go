// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit

import (
	"errors"
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// RetryConfig is the back-off between attempts.
type RetryConfig = backoff.Config

// Config has the settings of every receiver. A receiver squashes it into its own Config.
type Config struct {
	// ResourceAttributes are added to each resource. They win over the receiver's own.
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`
	// Retry is the back-off between attempts to deliver data that a pipeline refused.
	Retry RetryConfig `mapstructure:"retry"`
	// ShutdownTimeout is how long a shutdown may disconnect peers and deliver data.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
	// CollectionInterval is the time between two collections of metrics.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
}

// DefaultConfig returns the defaults of every receiver.
func DefaultConfig() Config {
	return Config{
		Retry:              RetryConfig{InitialInterval: 50 * time.Millisecond, MaxInterval: time.Second},
		ShutdownTimeout:    5 * time.Second,
		CollectionInterval: 10 * time.Second,
	}
}

// DefaultReconnect returns the default back-off of receivers that connect to servers.
func DefaultReconnect() RetryConfig {
	return RetryConfig{InitialInterval: 200 * time.Millisecond, MaxInterval: 30 * time.Second}
}

const (
	// maxRetryInterval bounds retry.max_interval, and maxReconnectInterval reconnect.max_interval.
	maxRetryInterval     = time.Minute
	maxReconnectInterval = time.Hour
	// minQueueBytes has room for any entry of a queue.
	minQueueBytes = 1 << 20
)

// ValidateCommon returns an error for each common setting out of bounds. Receivers of call events
// call BatchesConfig.ValidateWith instead. It isn't called Validate because the collector would call
// it a second time.
func (c *Config) ValidateCommon() error {
	return c.validateWith(c.Retry.ValidateAs("retry", maxRetryInterval))
}

// validateWith returns the error of retry, and an error for each other setting out of bounds.
func (c *Config) validateWith(retry error) error {
	return errors.Join(
		setting.ResourceAttributes(c.ResourceAttributes),
		retry,
		setting.Timeout("shutdown_timeout", c.ShutdownTimeout),
		setting.CollectionInterval(c.CollectionInterval),
	)
}

// ValidateReconnect returns an error if the setting reconnect is out of bounds.
func ValidateReconnect(c RetryConfig) error { return c.ValidateAs("reconnect", maxReconnectInterval) }

// LogLimits bound the queue of log records: the limit that is reached first.
type LogLimits struct {
	// MaxQueuedLogs is in log records, MaxQueuedLogBytes in bytes.
	MaxQueuedLogs     int `mapstructure:"max_queued_logs"`
	MaxQueuedLogBytes int `mapstructure:"max_queued_log_bytes"`
}

// ValidateQueue returns an error for each limit out of bounds; most bounds the records.
func (l *LogLimits) ValidateQueue(most int) error {
	return validateQueue("max_queued_logs", l.MaxQueuedLogs, most, "max_queued_log_bytes", l.MaxQueuedLogBytes)
}

// SpanLimits bound the queue of spans: the limit that is reached first.
type SpanLimits struct {
	// MaxQueuedSpans is in spans, MaxQueuedSpanBytes in bytes.
	MaxQueuedSpans     int `mapstructure:"max_queued_spans"`
	MaxQueuedSpanBytes int `mapstructure:"max_queued_span_bytes"`
}

// ValidateQueue returns an error for each limit out of bounds; most bounds the spans.
func (l *SpanLimits) ValidateQueue(most int) error {
	return validateQueue("max_queued_spans", l.MaxQueuedSpans, most, "max_queued_span_bytes", l.MaxQueuedSpanBytes)
}

// SampleLimits bound the queue of profile samples: the limit that is reached first.
type SampleLimits struct {
	// MaxQueuedSamples is in samples, MaxQueuedSampleBytes in bytes.
	MaxQueuedSamples     int `mapstructure:"max_queued_samples"`
	MaxQueuedSampleBytes int `mapstructure:"max_queued_sample_bytes"`
}

// ValidateQueue returns an error for each limit out of bounds; most bounds the samples.
func (l *SampleLimits) ValidateQueue(most int) error {
	return validateQueue("max_queued_samples", l.MaxQueuedSamples, most, "max_queued_sample_bytes", l.MaxQueuedSampleBytes)
}

func validateQueue(itemsField string, items, most int, bytesField string, bytes int) error {
	return errors.Join(
		setting.Between("limits."+itemsField, items, 1, most),
		setting.Between("limits."+bytesField, bytes, minQueueBytes, math.MaxInt),
	)
}
