// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

// Histogram is a base-2 exponential histogram of durations, as OpenTelemetry defines it
// (opentelemetry-proto, message ExponentialHistogramDataPoint), of values in seconds. Bucket
// i has the values above base^i up to base^(i+1), where base is 2^(2^-Scale). Durations are
// above 0, so there is no bucket for zero.
type Histogram struct {
	// Scale is at most 4: 16 buckets for each power of two.
	Scale int32
	// Offset is the index of the first bucket in Counts. Counts has at most 160 buckets.
	Offset int32
	Counts []uint64
}
