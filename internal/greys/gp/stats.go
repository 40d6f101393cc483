// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

// Stats count the traffic of a connection.
type Stats struct {
	// Frames and Bytes count received replies and their bytes, with headers.
	Frames, Bytes uint64
	// Tolerated counts replies whose data were not JSON but readable as YAML.
	Tolerated uint64
	// Dropped counts replies with invalid data, or with too long data.
	Dropped uint64
	// LastDropped is the reason of the last one. It wraps a *ProtocolError with an offset in the data, or the offset of
	// a length.
	LastDropped error
	// Unasked counts replies without a known request: it was never sent, or has ended.
	Unasked uint64
	// Late counts replies to abandoned requests.
	Late uint64
	// Gaps counts how often resp_id was not the next number.
	Gaps uint64
	// Heartbeats counts sent heartbeats; Unanswered is the number of those without an answer so far.
	Heartbeats, Unanswered uint64
}
