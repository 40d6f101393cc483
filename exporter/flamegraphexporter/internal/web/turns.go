// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
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
}

// turnPatience is how long a request waits for its turn.
const turnPatience = 10 * time.Second
