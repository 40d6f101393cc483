// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package stackpairingprocessor pairs the call events of traced programs, which receivers
// pack into batches, and emits spans.
//
// It knows pipelines: it accepts batches, delivers spans, holds refused ones, and has
// telemetry. Package pairing has the rules of pairing. It knows no tracer's protocol.
//
// The way of the data: handover.go splits a hand-over and answers it. shard.go passes each
// batch to its stream. spans.go makes pdata of finished calls. held.go keeps spans that the
// next component refused. clock.go and timers.go end waiting in vain. bounds.go frees memory
// at the bounds.
package stackpairingprocessor
