// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package functionmetrics makes metrics of functions from the sums of call streams: calls, errors
// and durations. All streams of one resource and scope add to the same cumulative series.
//
// It knows no pipelines, and has neither goroutines nor a clock. The owner of a [Metrics] makes one
// call at a time. [Exemplars] are collected apart, so that no stream waits while metrics are made.
//
// Texts of increments are valid UTF-8, because batches of call events are.
package functionmetrics
