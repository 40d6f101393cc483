// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package tracefile encodes slices, values of counters, and instants as records of a Perfetto trace file. It knows the
// schema of TracePacket (Perfetto's protos/perfetto/trace) and no pdata, and it writes no file.
//
// A record is a chunk: about 512 KiB of packets, compressed into one packet. It contains everything that a reader
// needs for its events: the clock, the descriptors of its tracks, and its interned strings. So a lost chunk, a torn
// file and a new file need no repair of the state.
//
// Slices arrive as wholes, callees before callers, and some arrive late. Readers nest the slices of a track by time
// only: the end of a slice closes the slice that began last. Three rules make their result right:
//
//  1. A track accepts a slice only if it lies completely inside, outside or around each earlier one (lane.go).
//     Otherwise the slice goes to another track of its thread.
//  2. Readers sort events by time, and keep the order of the file for equal times. The events of a track are sorted,
//     those of equal times in the order of nesting (order.go).
//  3. If a later chunk would have to write an event before an equal time of an earlier chunk, rule 1 refuses the slice.
package tracefile
