// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package pairing turns the call events of one call stream into finished calls. It puts
// them in order, keeps one stack for each lane, pairs entries with exits, and obeys
// barriers.
//
// It knows batches of call events and the rules of pairing. It knows no tracer's protocol,
// no pdata, no pipeline, no goroutines and no clock of its own. The caller of a Stream owns
// it, and makes one call at a time.
//
// A batch passes these files, each using only files below it:
//
//  1. stream.go accepts it. names.go numbers its functions, lanes and exceptions for the
//     stream, and renames.go learns the names of lanes.
//  2. order.go passes the events on in the order of their sequence numbers. Early events
//     wait in the window (window.go). arrivals.go tells since when a number is missing,
//     ranges.go remembers given-up numbers, and barriers.go the barriers ahead.
//  3. stacks.go pairs each event on the stack of its lane (lane.go), at its time (clock.go),
//     in its trace (traces.go). reuse.go has the rules for a lane that two threads share.
//     sums.go counts the calls, if the settings ask for it.
//  4. If traces are selected (keep.go), a call that ends waits in memory (chunks.go) until its
//     trace is decided (undecided.go). Repeated short calls share a record (repeated.go).
//  5. A call is written to an Output (output.go), with its attributes (attributes.go). A reader
//     makes spans, metrics or profiles of it.
package pairing
