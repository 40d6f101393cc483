// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
)

// faults is how often there was what.
type faults struct {
	refusals int64 // the backend refused everything
	restarts int64 // the backend was away, and came back
	full     int64 // the queue's disk was full
	crawls   int64 // the backend read slowly
}

// turn is how long one fault, or none, lasts.
const turn = 5 * time.Second

// fail has the backend refuse, go away with the disk full, come back and read slowly, by turns.
func (s *soak) fail(ctx context.Context) {
	tick := time.NewTicker(turn)
	defer tick.Stop()
	turns := []func(){
		func() {
			s.backend.refuses.Store(true)
			s.faults.refusals++
		},
		func() { // also away, and full while nothing is taken from it
			assert.NoError(s.t, s.backend.leave())
			isFull, err := s.disk.fill()
			assert.NoError(s.t, err)
			if isFull {
				s.faults.full++
			}
		},
		func() {
			assert.NoError(s.t, s.backend.comeBack())
			s.faults.restarts++
			assert.NoError(s.t, s.disk.free())
		},
		func() {
			s.backend.refuses.Store(false)
			s.backend.crawls.Store(true)
			s.faults.crawls++
		},
		func() { s.backend.crawls.Store(false) },
		func() {}, // what waits is taken
	}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			s.backend.refuses.Store(false)
			s.backend.crawls.Store(false)
			assert.NoError(s.t, s.backend.comeBack())
			assert.NoError(s.t, s.disk.free())
			return
		case <-tick.C:
			turns[n%len(turns)]()
		}
	}
}
