// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"sync/atomic"
)

// instrumentingAtOnce is how many commands a server instruments classes for at the same time.
const instrumentingAtOnce = 8

// gate bounds the commands for which a server instruments classes at the same time.
type gate struct {
	places chan struct{}
	// oneByOne: there is one at a time. After one of several was refused it is unknown which the
	// server refuses for itself.
	oneByOne *atomic.Bool
	// alone is held while all places are taken.
	alone *sync.Mutex
}

func newGate() gate {
	return gate{places: make(chan struct{}, instrumentingAtOnce), oneByOne: new(atomic.Bool), alone: new(sync.Mutex)}
}

// enter waits until the server may be asked to instrument. leave frees the place. ok is false where
// ctx has ended.
func (g *gate) enter(ctx context.Context) (leave func(), ok bool) {
	if g.oneByOne.Load() {
		return g.enterAlone(ctx)
	}
	return g.takePlaces(ctx, 1)
}

// enterAlone waits until the server instruments for no other command.
func (g *gate) enterAlone(ctx context.Context) (leave func(), ok bool) {
	g.alone.Lock()
	defer g.alone.Unlock()
	return g.takePlaces(ctx, instrumentingAtOnce)
}

func (g *gate) takePlaces(ctx context.Context, n int) (leave func(), ok bool) {
	for taken := range n {
		select {
		case g.places <- struct{}{}:
		case <-ctx.Done():
			for range taken {
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
