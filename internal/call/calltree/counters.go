// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// Counters are the counts of a store since it was made.
type Counters struct {
	// Spans were folded. Duplicates had arrived before and were ignored.
	Spans, Duplicates uint64
	// UncountedSpans were only kept, because of Settings.KeepOnly.
	UncountedSpans uint64
	// Calls are those of call paths.
	Calls uint64
	// MixedServices sent spans that count and call paths. Each counts once until its next reset.
	MixedServices uint64
	// OtherServices are spans and samples of more services than are allowed.
	OtherServices uint64
	// SilentServices were evicted with their trees, because they were silent for PendingTimeout
	// and others needed their place.
	SilentServices uint64
	// YieldedServices left their place to one that had shown more. Their counts are in
	// [OtherServices].
	YieldedServices uint64
	// Shed was given up because Settings.Hold demanded memory. The other counters include it.
	Shed Shed
	// ParentsNotSeen are callers that did not arrive.
	ParentsNotSeen ParentsNotSeen
	// Forgotten are calls that were forgotten before PendingTimeout.
	Forgotten uint64
	// FoldedPaths are paths that were folded to make room.
	FoldedPaths uint64
	// Samples of profiles were folded. DroppedSamples were of more kinds than are allowed.
	Samples, DroppedSamples uint64
	// CutSamples were folded below [MissingParent], because their stacks have no frames or were
	// cut. Those of call paths are in nodes [Folded].
	CutSamples uint64
	// RefusedWindows were refused because too many were open.
	RefusedWindows uint64
	// DroppedKept are kept spans that made room for others, and DroppedTraces the traces
	// without any kept span left.
	DroppedKept, DroppedTraces uint64
}

// ParentsNotSeen are callers that did not arrive, by reason.
type ParentsNotSeen struct {
	// Timeout: they did not arrive within PendingTimeout. Limit: there was no more room to
	// wait. Cycle: the caller would be a callee of its own callee.
	Timeout, Limit, Cycle uint64
}

// Shed was given up to free memory: kept spans, calls that were waited for or remembered, and
// paths.
type Shed struct {
	KeptSpans, Calls, Paths uint64
}

// Usage is the contents of a store.
type Usage struct {
	Services int
	// Nodes are the paths of all trees.
	Nodes int
	// Waiting are callers that have not arrived, and Remembered calls that arrived.
	Waiting, Remembered int
	// NameBytes is the memory of names of functions.
	NameBytes int
	// Kept are kept spans.
	Kept int
	// Windows are open.
	Windows int
}
