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
	// Begin begins the sums of calls with this source. The sums must not change the source.
	Begin(Source) SourceSums
	// Bytes is about the memory of all sums, which counts as the engine's.
	Bytes() int64
	// GiveWay lets go of what no stream needs, because the memory budget demands memory. It does not wait.
	GiveWay()
}

// SourceSums receives the sums of the calls of one stream with one source. The engine makes one
// call of Add and End at a time.
type SourceSums interface {
	// Add adds an increment, which belongs to the receiver from now on.
	Add(*callsum.Increment)
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

// originSums are the sums of an origin. The zero value sums nothing.
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

// add adds an increment that is not empty.
func (s *originSums) add(inc *callsum.Increment) {
	if len(inc.ByFunction) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to.Add(inc)
}

func (s *originSums) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to.End()
}
