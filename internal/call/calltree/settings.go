// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

// Settings bound what a store holds.
type Settings struct {
	// PendingTimeout is how long what was called by a call that has not come waits for it,
	// and how long a call that came is remembered for what it called and has not come; and how
	// long a thread is known of which no span is kept.
	PendingTimeout time.Duration
	// MaxServices is how many services have trees of their own, above 0. One more takes the
	// place of one of which nothing came for PendingTimeout; others share one, until they have
	// shown more than the one that has shown least.
	MaxServices int
	// MaxNodes is how many paths all trees have, those of calls that wait included: at
	// least [LeastNodes], and [NodesOfService] for each service. With fewer there may be
	// nothing to fold, and it is looked for with every span.
	MaxNodes int
	// MaxPending is how many calls are waited for or remembered: at least [LeastPending].
	MaxPending int
	// MaxNameBytes is how long a name may be, and MaxNamesBytes what all take. The second
	// has to be so many times the first, and so many bytes for each service: [LeastNames]
	// and [NamesOfService].
	MaxNameBytes, MaxNamesBytes int
	// MaxKeptSpans is how many spans are kept as they came, for [Store.Trace]; 0: none.
	MaxKeptSpans int
	// MaxWindows is how many windows are collected at once.
	MaxWindows int
	// Hold is called with how many bytes the store holds, and says how many of these it has
	// to give back; nil: none. It must not call the store.
	Hold func(bytes int64) (excess int64)
	// Now tells the time; nil: time.Now.
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

// MaxDepth is how deep the trees of snapshots are. What is deeper is in a node [Deep]. Of
// stacks that are deeper the lowest frames are taken, below a node [MissingParent].
const MaxDepth = 1000

const (
	// maxFrames is how many frames of a stack are taken: with the node above them that is
	// as much as is shown.
	maxFrames = MaxDepth - 2
	// maxKinds is how many kinds of profiles a service has trees of.
	maxKinds = 16
	// maxThreads is how many threads of a service are known, maxAllThreads of all
	// services, and maxThreadName how long their names are.
	maxThreads    = 10_000
	maxAllThreads = 100_000
	maxThreadName = 128
)

// OtherServices is the service of what is of more services than are allowed. Of spans of one
// ID that two of them have it has the first that came.
const OtherServices = "(other services)"
