// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// With returns the option of a point with one attribute.
func With(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// Count adds to one of the receiver's own counters. Nothing is added for 0, so that a counter
// appears with its first occurrence.
func Count(counter metric.Int64Counter, n int64, options ...metric.AddOption) {
	if n > 0 {
		counter.Add(context.Background(), n, options...)
	}
}

// CountBy returns a function that counts dropped items by reason. Outputs call it.
func CountBy(counter metric.Int64Counter) func(items int, reason string) {
	return func(items int, reason string) { Count(counter, int64(items), With("reason", reason)) }
}
