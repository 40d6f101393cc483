// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Several goroutines fold spans that call each other, while others read and collect.
func TestSeveralGoroutinesUseAStore(t *testing.T) {
	const folders, spans = 4, 2000
	s := NewStore(settings())
	var folding, reading sync.WaitGroup
	done := make(chan struct{})
	for f := range folders {
		folding.Go(func() {
			// Each goroutine folds its part of a chain.
			for i := f; i < spans; i += folders {
				s.Fold(Origin{Service: "s", Instance: fmt.Sprint(f)}, []Span{{
					Trace: traceID(1), ID: spanID(i), ParentTrace: traceID(1), Parent: spanID(i / 2), Function: fmt.Sprint("f", i%7),
					Start: 1, End: 5, HasThread: true, Thread: int64(f),
				}})
				s.FoldPaths(Origin{Service: "p"}, grown("main/f"), time.Second)
				s.FoldSamples(Origin{Service: "r"}, Kind{Type: "cpu"}, Sample{Frames: []Frame{{Function: "f"}}, Count: 1, Value: 1})
			}
		})
	}
	for _, read := range []func(){
		func() { s.Snapshot("s", Calls) },
		func() { s.Services() },
		func() { s.Traces("s"); s.Trace(traceID(1)) },
		func() { _, _ = s.Collect(t.Context(), "s", Calls, time.Microsecond, noWait) },
		func() { s.Reset("r") },
		func() { s.Counters(); s.Usage() },
	} {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					read()
				}
			}
		})
	}
	folding.Wait()
	close(done)
	reading.Wait()
	check(t, s)
	assert.EqualValues(t, spans, s.Counters().Spans)
	snapshot, ok := s.Snapshot("s", Calls)
	require.True(t, ok)
	calls := uint64(0)
	for _, n := range snapshot.Nodes {
		calls += n.Calls
	}
	assert.EqualValues(t, spans, calls)
	assert.Equal(t, folders, s.Services()[len(s.Services())-1].Threads)
	assert.EqualValues(t, spans, s.Counters().Calls)
}
