// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package stackpairingprocessor pairs the call events of traced programs, which receivers
// pack into batches, and emits spans.
//
// It knows pipelines: it accepts batches, delivers spans, holds refused ones, and has
// telemetry. Package pairing has the rules of pairing. It knows no tracer's protocol.
//
// The way of the data, from file to file: processor.go has the life cycle, and answers each
// hand-over in five steps (handover.go). engine.go has all streams, and keeps them below their
// bounds. It passes each batch to the shard of its stream (shard.go). spans.go makes pdata of
// finished calls. held.go delivers them, and holds those that the next component refused.
// clock.go is the time by which events wait.
package stackpairingprocessor
