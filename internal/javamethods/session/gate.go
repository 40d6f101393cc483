// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"sync/atomic"
)

// instrumentingAtOnce is the number of commands for which a server may instrument classes simultaneously.
const instrumentingAtOnce = 8

// gate limits the commands for which a server instruments classes simultaneously.
type gate struct {
	places chan struct{}
	// oneByOne allows one command at a time. After a refusal among several simultaneous commands it is unknown which of
	// them the server really refuses.
	oneByOne *atomic.Bool
	// alone is locked while all places are reserved.
	alone *sync.Mutex
}

func newGate() gate {
	return gate{places: make(chan struct{}, instrumentingAtOnce), oneByOne: new(atomic.Bool), alone: new(sync.Mutex)}
}

// enter waits for a free place. leave releases it. ok is false if ctx has ended.
func (g *gate) enter(ctx context.Context) (leave func(), ok bool) {
	if g.oneByOne.Load() {
		return g.enterAlone(ctx)
	}
	return g.reservePlaces(ctx, 1)
}

// enterAlone waits until no other command has a place.
func (g *gate) enterAlone(ctx context.Context) (leave func(), ok bool) {
	g.alone.Lock()
	defer g.alone.Unlock()
	return g.reservePlaces(ctx, instrumentingAtOnce)
}

func (g *gate) reservePlaces(ctx context.Context, n int) (leave func(), ok bool) {
	for reserved := range n {
		select {
		case g.places <- struct{}{}:
		case <-ctx.Done():
			for range reserved {
				<-g.places
			}
			return nil, false
		}
	}
	return sync.OnceFunc(func() {
		for range n {
			<-g.places
		}
	}), true
}
