// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/history"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
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

// History has stored windows. A [history.History] has them.
type History interface {
	// Services are those with windows, sorted by name, and Kinds the kinds of one.
	Services() []string
	Kinds(service string) []calltree.Kind
	// Windows are the windows of a tree, the latest first. A day stands before its hours.
	Windows(service string, kind calltree.Kind) []storedtree.Window
	// Paths is how many a window has about.
	Paths(service string, kind calltree.Kind, w storedtree.Window) int
	// Tree fails with the errors of package history.
	Tree(ctx context.Context, service string, kind calltree.Kind, w storedtree.Window) (calltree.Snapshot, error)
	// Notes are sentences about stored trees that cannot be shown, or stored.
	Notes() []string
}

var _ History = (*history.History)(nil)

// noHistory is the history without a storage.
type noHistory struct{}

func (noHistory) Services() []string                                 { return nil }
func (noHistory) Kinds(string) []calltree.Kind                       { return nil }
func (noHistory) Windows(string, calltree.Kind) []storedtree.Window  { return nil }
func (noHistory) Paths(string, calltree.Kind, storedtree.Window) int { return 0 }
func (noHistory) Notes() []string                                    { return nil }
func (noHistory) Tree(context.Context, string, calltree.Kind, storedtree.Window) (calltree.Snapshot, error) {
	return calltree.Snapshot{}, errNoStorage
}

var errNoStorage = fmt.Errorf("%w: the setting storage of the exporter is not set", history.ErrNotStored)
