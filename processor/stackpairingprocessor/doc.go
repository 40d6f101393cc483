// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package stackpairingprocessor pairs the call events of traced programs, which
// receivers pack into batches, into spans.
//
// It knows pipelines: taking batches, handing spans on, holding what is refused,
// telemetry. The rules of pairing are in internal/pairing. It knows no tracer's
// protocol.
//
// The way of the data: handover.go takes a hand-over apart and answers it;
// shard.go gives each batch to its stream; spans.go makes finished calls pdata;
// held.go keeps what the next component refused; clock.go and timers.go end what
// is waited for in vain; bounds.go makes room where too much is held.
package stackpairingprocessor
