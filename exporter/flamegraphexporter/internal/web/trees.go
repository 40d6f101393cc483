// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// Trees are the trees to show. A [calltree.Store] has them.
type Trees interface {
	Services() []calltree.Service
	// Paths is how many there are of a tree about; 0 where there is none.
	Paths(service string, kind calltree.Kind) int
	Usage() calltree.Usage
	// Counters count data without a place of its own.
	Counters() calltree.Counters
	Snapshot(service string, kind calltree.Kind) (calltree.Snapshot, bool)
	// Collect collects a window of a length, and returns it after turn has returned. It fails with
	// the errors of package calltree, that of the context, or that of turn.
	Collect(ctx context.Context, service string, kind calltree.Kind, d time.Duration, turn func(context.Context) error) (calltree.Snapshot, error)
	Reset(service string) bool
	ResetAll()
	Traces(service string) []calltree.TraceSummary
	Trace(id calltree.TraceID) ([]calltree.KeptSpan, bool)
}

var _ Trees = (*calltree.Store)(nil)
