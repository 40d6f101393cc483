// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine pairs the call events of traced programs, which receivers pack into batches,
// and emits spans. The processor stack_pairing is an engine with the collector's factory, and
// the own metrics of a processor.
//
// It knows pipelines: it accepts batches, delivers spans, holds refused ones, and has
// telemetry. Package pairing has the rules of pairing. It knows no tracer's protocol.
//
// The way of the data, from file to file: engine.go has the life cycle, and answers each
// hand-over in five steps (handover.go). streams.go has all streams, and keeps them below their
// bounds. It passes each batch to the shard of its stream (shard.go). spans.go makes pdata of
// finished calls. held.go delivers them, and holds those that the next component refused.
// clock.go is the time by which events wait.
package engine
