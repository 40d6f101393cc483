// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
)

// pause is the common pause of all goroutines whose batch was refused.
//
//   - They try again at the same time, and immediately when the pipeline accepts a batch of any of them. Otherwise
//     stack_pairing would hold an accepted batch, wait for sequence numbers of a sleeping one, and give them up.
//   - A new batch does not wait. stack_pairing may need just that batch to make room for the others.
type pause struct {
	mu      sync.Mutex
	backoff *backoff.Backoff
	// over is closed at the end of the current pause; nil: no pause.
	over  chan struct{}
	timer *time.Timer
}

func newPause(retry backoff.Config) *pause { return &pause{backoff: backoff.New(retry)} }

// refused notes that the pipeline refused a batch. It returns a channel that is closed at the time of the next try.
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

// accepted notes that the pipeline accepted a batch, and ends the pause.
func (p *pause) accepted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backoff.Reset()
	if p.over != nil {
		p.timer.Stop()
		p.end(p.over)
	}
}

// end ends the pause of a channel, unless it has ended.
func (p *pause) end(over chan struct{}) {
	if p.over == over {
		close(over)
		p.over = nil
	}
}
