// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine pairs the call events of traced programs, which receivers pack into batches. It
// makes spans of all calls, or of the calls of selected traces, and sums of all calls. The processor
// and the connector stack_pairing are an engine with the collector's factory, their own metrics,
// and, in the connector, the outputs of sums.
//
// It knows pipelines: it accepts batches, delivers spans, holds refused ones, and has
// telemetry. Package pairing has the rules of pairing and of the selection of traces. Package callsum
// sums calls. The engine knows no tracer's protocol.
//
// The way of the data, from file to file: engine.go has the life cycle, and answers each
// hand-over in five steps (acceptAll). handover.go divides a hand-over into batches and other spans. streams.go has all
// streams, and keeps them below their bounds. It passes each batch to the shard of its stream (shard.go). spans.go makes
// pdata of finished calls, with the IDs of identity.go. held.go delivers them, and holds those that the next component
// refused. next.go calls the next component, also during a shutdown. sums.go is the interface to the receiver of sums.
//
// Beside the way: config.go has the settings, and telemetry.go the instruments. account.go answers the memory budget of
// the process, with the sizes of memory.go. needs.go warns of needs of receivers that the configuration does not meet.
// clock.go is the time by which events wait. attributelist.go compares attributes, and timedmutex.go is a lock whose
// callers can stop waiting.
package engine
