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

// take waits for a turn. Whoever has taken it gives it back by done.
func (ts turns) take(ctx context.Context) (done func(), err error) {
	waiting := time.NewTimer(turnPatience)
	defer waiting.Stop()
	select {
	case ts <- struct{}{}:
		return func() { <-ts }, nil
	case <-waiting.C:
		return nil, errTooMany
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// turnPatience is how long a request waits for its turn.
const turnPatience = 10 * time.Second
