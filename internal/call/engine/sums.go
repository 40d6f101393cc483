// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/pairing"
)

// Sums receives the sums of calls. Several goroutines call it.
type Sums interface {
	// Begin begins the sums of calls of one stream with one resource.
	Begin() SourceSums
	// Bytes is about the memory of all sums, which counts as the engine's.
	Bytes() int64
	// GiveWay lets go of what no stream needs, because the memory budget demands memory. It does not wait.
	GiveWay()
}

// SourceSums receives the sums of the calls of one stream with one resource. The engine makes one
// call of Add and End at a time.
type SourceSums interface {
	// Add adds an increment of a source. The increment belongs to the receiver from now on. The source does
	// not change, and has the same address as long as it is the same. Sources of different increments
	// differ only in the attributes of their scopes.
	Add(*callsum.Increment, *Source)
	// Kept receives an output with calls that become spans. It belongs to the engine, which can call it at any
	// time, also while other streams wait for this one. So it must not wait for a message.
	Kept(*pairing.Output, *Identity)
	// End ends the sums. Only Add can follow, with the increment of an earlier step: two steps of a
	// stream deliver at the same time, and the later one may be the faster.
	End()
}

// Source is the resource and the scope of a stream.
type Source struct {
	Resource          pcommon.Resource
	ResourceSchemaURL string
	Scope             pcommon.InstrumentationScope
	ScopeSchemaURL    string
}

// originSums are the sums of origins that differ only in attributes of their scopes. The zero value sums nothing.
type originSums struct {
	// mu is held for each call of Add and End. The shard's lock may be held meanwhile, and is never taken
	// while mu is held.
	mu sync.Mutex
	to SourceSums
	// ended: End was called, or is about to be. The shard's lock guards it.
	ended bool
}

// increment is an increment on its way to the sums of its origin.
type increment struct {
	of *origin
	callsum.Increment
}

// deliver adds an increment that is not empty to the sums of its origin.
func (i *increment) deliver() {
	if i.IsEmpty() {
		return
	}
	s := i.of.sums
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to.Add(&i.Increment, &i.of.Source)
}

func (s *originSums) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to.End()
}
