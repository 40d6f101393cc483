// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
)

// faults counts the faults by kind.
type faults struct {
	refusals int64 // the backend refused everything
	restarts int64 // the backend was absent, and returned
	full     int64 // the queue's disk was full
	crawls   int64 // the backend read slowly
}

// turn is the length of one fault, or of a pause.
const turn = 5 * time.Second

// fail lets the backend refuse, be absent while the disk is full, return, and read slowly, in turn.
func (s *soak) fail(ctx context.Context) {
	tick := time.NewTicker(turn)
	defer tick.Stop()
	turns := []func(){
		func() {
			s.backend.refuses.Store(true)
			s.faults.refusals++
		},
		func() { // it is also absent, and the disk is full
			assert.NoError(s.t, s.backend.close())
			isFull, err := s.disk.fill()
			assert.NoError(s.t, err)
			if isFull {
				s.faults.full++
			}
		},
		func() {
			assert.NoError(s.t, s.backend.listen())
			s.faults.restarts++
			assert.NoError(s.t, s.disk.free())
		},
		func() {
			s.backend.refuses.Store(false)
			s.backend.crawls.Store(true)
			s.faults.crawls++
		},
		func() { s.backend.crawls.Store(false) },
		func() {}, // the backend receives the waiting data
	}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			s.backend.refuses.Store(false)
			s.backend.crawls.Store(false)
			assert.NoError(s.t, s.backend.listen())
			assert.NoError(s.t, s.disk.free())
			return
		case <-tick.C:
			turns[n%len(turns)]()
		}
	}
}
