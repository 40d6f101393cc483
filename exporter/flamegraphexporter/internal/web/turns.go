// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"sync/atomic"
	"time"
)

// Bounds of the responses with a copy of a tree, which has all paths of a service: mostPages while
// they are built, mostDownloads until they are sent. Others wait for their turn.
const (
	mostPages     = 2
	mostDownloads = 2
)

// turns has room for the responses that may have a turn at the same time.
type turns chan struct{}

// turn is the turn of a response.
type turn struct {
	of      turns
	isTaken bool
	// memory reserves memory. release frees it, and is nil before.
	memory  func(bytes int64, leave func()) (release func(), err error)
	release func()
	// isOver is set when the response has to end for want of memory.
	isOver *atomic.Bool
}

// hold reserves memory for the response, in bytes, until the end of its turn.
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

// Memory of responses in bytes, with everything that is built from it.
const (
	// pathMemory is for each path of a tree, and shownMemory for each that a page of pprof shows
	// beside it.
	pathMemory  = 400
	shownMemory = 4096
	mostShown   = 4000
	// keptMemory is for each kept span, and serviceMemory for each service.
	keptMemory    = 250
	serviceMemory = 2048
)

// ofPaths is the memory of a response with a tree.
func ofPaths(paths int) int64 {
	return pathMemory*int64(paths) + shownMemory*int64(min(paths, mostShown))
}

// wait waits for the turn.
func (t *turn) wait(ctx context.Context) error {
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

// end ends the turn and frees its memory.
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
