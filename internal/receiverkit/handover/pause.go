// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
)

// pause is the one pause of all who hand on and were refused. They try again together,
// and at once when the pipeline accepts what any of them hands on: what one delivers
// would else wait in stack_pairing for the numbers of another that still sleeps, until
// they are given up. A batch that was not refused yet does not wait: it may be just the
// one that stack_pairing needs to have room for the others.
type pause struct {
	mu      sync.Mutex
	backoff *backoff.Backoff
	// over is closed when the pause is over that goes on; nil: none does.
	over  chan struct{}
	timer *time.Timer
}

func newPause(retry backoff.Config) *pause { return &pause{backoff: backoff.New(retry)} }

// refused says that the pipeline refused a batch, and gives what is closed when it is
// to be tried again.
func (p *pause) refused() (again <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil {
		return p.over
	}
	over := make(chan struct{})
	p.over = over
	p.timer = time.AfterFunc(p.backoff.Pause(), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.end(over)
	})
	return over
}

// accepted says that the pipeline accepted a batch.
func (p *pause) accepted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backoff.Reset()
	if p.over != nil {
		p.timer.Stop()
		p.end(p.over)
	}
}

// end ends a pause, unless it is over.
func (p *pause) end(over chan struct{}) {
	if p.over == over {
		close(over)
		p.over = nil
	}
}
