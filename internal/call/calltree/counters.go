// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// Counters are what a store counts, since it was made.
type Counters struct {
	// Spans are those that were folded, and Duplicates those that came before and were
	// not.
	Spans, Duplicates uint64
	// OtherServices are spans and samples of more services than are allowed.
	OtherServices uint64
	// SilentServices are those that were forgotten, with their trees, because nothing came
	// of them for PendingTimeout and others needed their place.
	SilentServices uint64
	// YieldedServices are those that left their place to one that had shown more, with what
	// was counted of them in [OtherServices].
	YieldedServices uint64
	// Shed is what was given up because Settings.Hold asked for memory. It counts among the
	// others, too.
	Shed Shed
	// ParentsNotSeen are calls that were waited for in vain.
	ParentsNotSeen ParentsNotSeen
	// Forgotten are calls that were not remembered any more before PendingTimeout.
	Forgotten uint64
	// FoldedPaths are paths that were folded to make room.
	FoldedPaths uint64
	// Samples are those of profiles that were folded, and DroppedSamples those that were
	// of more kinds than are allowed.
	Samples, DroppedSamples uint64
	// CutSamples are those that were folded below [MissingParent]: their stacks have no
	// frames, or were cut.
	CutSamples uint64
	// RefusedWindows are those that were asked for while as many as are allowed were
	// collected.
	RefusedWindows uint64
	// DroppedKept are spans that were kept and made room for others, and DroppedTraces
	// the traces of which none is kept any more.
	DroppedKept, DroppedTraces uint64
}

// ParentsNotSeen are calls that were waited for in vain, by the reason.
type ParentsNotSeen struct {
	// Timeout: for PendingTimeout. Limit: as long as there was room. Cycle: it is one that
	// the call itself led to.
	Timeout, Limit, Cycle uint64
}

// Shed is what was given up to hold less memory: spans that were kept, calls that were
// waited for or remembered, and paths.
type Shed struct {
	KeptSpans, Calls, Paths uint64
}

// Usage is what a store holds.
type Usage struct {
	Services int
	// Nodes are the paths of all trees.
	Nodes int
	// Waiting are calls that are waited for, and Remembered those that came and are
	// remembered.
	Waiting, Remembered int
	// NameBytes is what names of functions take.
	NameBytes int
	// Kept are spans that are kept as they came.
	Kept int
	// Windows are being collected.
	Windows int
}
