// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

// Settings bound the contents of a store.
type Settings struct {
	// PendingTimeout is the time for which callees wait for their caller, calls are remembered
	// for later callees, and threads without kept spans are known.
	PendingTimeout time.Duration
	// MaxServices bounds the services with trees of their own, above 0. A further one takes the
	// place of one that was silent for PendingTimeout. The others share one service, until they
	// have shown more than the weakest.
	MaxServices int
	// MaxNodes bounds the paths of all trees, with those that wait: at least [LeastNodes], and
	// [NodesOfService] for each service. With fewer there may be nothing to fold, which is
	// searched with every span.
	MaxNodes int
	// MaxPending bounds the calls that are waited for or remembered: at least [LeastPending].
	MaxPending int
	// MaxNameBytes bounds a name, and MaxNamesBytes all names. The second has to be at least
	// [LeastNames] times the first, and [NamesOfService] for each service.
	MaxNameBytes, MaxNamesBytes int
	// KeepOnly: spans are kept for [Store.Trace], and do not count.
	KeepOnly bool
	// MaxKeptSpans bounds the spans that are kept as they arrived, for [Store.Trace]; 0: none.
	MaxKeptSpans int
	// MaxWindows bounds the open windows.
	MaxWindows int
	// Periods: the store counts the growth of trees in periods: see [Store.Growth].
	Periods bool
	// Hold receives the memory of the store in bytes, and returns how many of them the store
	// has to free; nil: none. It must not call the store.
	Hold func(bytes int64) (excess int64)
	// Now returns the time; nil: time.Now.
	Now func() time.Time
}

// The least that settings can be.
const (
	LeastNodes     = 1000
	NodesOfService = 100
	LeastPending   = 100
	LeastNames     = 16
	NamesOfService = 1024
)

// MaxDepth is the depth of the trees of snapshots. Deeper nodes are in a node [Deep]. Of deeper
// stacks the lowest frames are used, below a node [MissingParent].
const MaxDepth = 1000

const (
	// maxFrames bounds the frames of a stack. With the node above them they reach MaxDepth.
	maxFrames = MaxDepth - 2
	// maxKinds bounds the kinds of profiles of a service.
	maxKinds = 16
	// maxThreads bounds the threads of a service, maxAllThreads those of all services, and
	// maxThreadName their names in bytes.
	maxThreads    = 10_000
	maxAllThreads = 100_000
	maxThreadName = 128
)

// OtherServices is the service of all services without a place. If two of them have a span of
// one ID, it has the first one.
const OtherServices = "(other services)"
