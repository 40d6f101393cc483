// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

import (
	"math"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Increment is the growth of a stream's sums since the increment before it. Each call that
// ended is in exactly one increment. If none ended, all fields are empty.
type Increment struct {
	// Functions, Exceptions and Lanes have the names of the numbers below. Function names are
	// those of their latest batch. Nothing here changes after Take.
	Functions  []*callevent.Function
	Exceptions []string
	Lanes      []callevent.Lane

	// ByFunction has an entry for each function, and for each function with an exception that
	// left it, if a call of it ended. It is empty if only paths are summed.
	ByFunction []FunctionSum

	// Paths are the call paths that the stream knows. A parent stands before its children, and
	// Paths[0] is the top, which is no call. Grown has those of them that grew, in their order.
	// Both are empty if paths are not summed.
	Paths []Path
	Grown []PathGrowth
}

// IsEmpty reports whether no call ended between the increment before and this one.
func (i *Increment) IsEmpty() bool { return len(i.ByFunction) == 0 && len(i.Grown) == 0 }

// FunctionSum is the sum of the calls of a function that ended in one way.
type FunctionSum struct {
	// Function is an index of Increment.Functions.
	Function uint32
	// Failed: an exception left the calls. Exception is an index of Increment.Exceptions; the
	// text of 0 is empty: the type is not known.
	Failed    bool
	Exception uint32
	Calls     uint64
	// Sum is the sum of their durations in nanoseconds.
	Sum       int64
	Histogram Histogram
}

// Path is a call path: a function below its caller's path. A lane has a path of its own below
// the top if lanes are summed separately.
type Path struct {
	// Parent is an index of Increment.Paths. That of the top is 0.
	Parent uint32
	// Label is an index of Functions, or of Lanes if the kind is PathLane.
	Label uint32
	Kind  PathKind
}

// PathKind is the meaning of a path.
type PathKind uint8

const (
	// PathFunction is a function below its caller, or below the top or a lane.
	PathFunction PathKind = iota
	// PathLane is a lane below the top. It is no call.
	PathLane
	// PathTruncated is a function whose ends were not seen. It stands beside the function's path,
	// which has the callees.
	PathTruncated
	// PathRest stands for all paths that had no room, below the top.
	PathRest
	// PathTop is the top.
	PathTop
)

// PathGrowth is the growth of a path, which is an index of Increment.Paths.
type PathGrowth struct {
	Path uint32
	PathValues
}

// PathValues are the sums of the calls of one path that ended.
type PathValues struct {
	Calls, Errors uint64
	// Self is the time in nanoseconds without the time of callees that ended. It is never below 0.
	Self int64
}

// added is the sum of two times, or the longest one. A thousand threads that end after some months exceed it.
func added(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}
