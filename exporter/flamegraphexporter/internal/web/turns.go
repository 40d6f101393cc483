// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"sync/atomic"
	"time"
)

// How many responses are made at once that hold a tree, which is a copy of all paths of a
// service: those that are held while they are made, and those that are held until they are
// sent. Others wait for their turn.
const (
	mostPages     = 2
	mostDownloads = 2
)

// turns has room for as many responses as are made at once.
type turns chan struct{}

// turn is that of a response, once it is taken.
type turn struct {
	of      turns
	isTaken bool
	// memory takes memory, and release gives it back, once some is taken.
	memory  func(bytes int64, leave func()) (release func(), err error)
	release func()
	// isOver is set when the response has to end for want of memory.
	isOver *atomic.Bool
}

func (h *Handler) turn(of turns) turn {
	return turn{of: of, memory: h.options.Take, isOver: new(atomic.Bool)}
}

// hold takes memory for the response, in bytes, as long as its turn lasts.
func (t *turn) hold(bytes int64) error {
	if t.memory == nil {
		return nil
	}
	release, err := t.memory(bytes, func() { t.isOver.Store(true) })
	if err != nil {
		return noMemory{err}
	}
	t.release = release
	return nil
}

// noMemory is the error of a response for which there is no memory.
type noMemory struct{ error }

// What responses take, in bytes, with what is made of them.
const (
	// pathMemory is for each path of a tree, and shownMemory for each that a page of pprof shows
	// beside it.
	pathMemory  = 400
	shownMemory = 4096
	mostShown   = 4000
	// keptMemory is for each span that is kept, and serviceMemory for each service.
	keptMemory    = 250
	serviceMemory = 2048
)

// ofPaths is what a response takes for a tree.
func ofPaths(paths int) int64 {
	return pathMemory*int64(paths) + shownMemory*int64(min(paths, mostShown))
}

// take waits for the turn.
func (t *turn) take(ctx context.Context) error {
	waiting := time.NewTimer(turnPatience)
	defer waiting.Stop()
	select {
	case t.of <- struct{}{}:
		t.isTaken = true
		return nil
	case <-waiting.C:
		return errTooMany
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end gives the turn to others, if it was taken.
func (t *turn) end() {
	if t.isTaken {
		<-t.of
	}
	if t.release != nil {
		t.release()
	}
}

// turnPatience is how long a request waits for its turn.
const turnPatience = 10 * time.Second
