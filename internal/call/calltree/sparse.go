// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

const (
	// leastCompacted is the length of slices that are never compacted.
	leastCompacted = 256
	// sparse is the denominator of the part of a slice that has to be in use.
	sparse = 4
	// loose is the denominator of the part that a slice may have room for beyond its use, if
	// memory is short.
	loose = 4
	// spareRoom is the denominator of the part that a compacted slice has room for beyond its
	// use. Without it the next addition would let it grow by a quarter.
	spareRoom = 8
)

func isSparse(length, used int) bool { return length > leastCompacted && length > sparse*used }

func isLoose(room, used int) bool { return room > leastCompacted && room-used > used/loose }

func withSpareRoom(used int) int { return used + used/spareRoom }
