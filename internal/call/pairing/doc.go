// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package pairing turns the call events of one call stream into finished calls:
// it puts them in order, keeps one stack for each lane, pairs entry and exit,
// and obeys barriers.
//
// It knows batches of call events and the rules of pairing. It knows no tracer's
// protocol, no pdata, no pipeline, no goroutines and no clock of its own: a
// Stream belongs to whoever calls it, one call at a time.
//
// The way of an event: stream.go takes it out of its batch, and names.go gives
// its names the stream's numbers; window.go lets it wait for those before it,
// order.go says for how long, giveup.go goes on without them, and ranges.go
// remembers their numbers; barriers.go ends stacks; clock.go says when the event
// was, lanes.go on which stack, renames.go what that is called then; stack.go opens
// and closes frames; trace.go puts them into traces; finish.go makes the finished
// Span, or leaves it out. attributes.go is about what few events have, sweep.go
// forgets names that nothing has any more, and memory.go says what all this takes.
package pairing
