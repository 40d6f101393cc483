// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"sync"
	"sync/atomic"
)

// sleepers are the packers of a run that the next new name wakes. They are for many goroutines.
type sleepers struct {
	// number is the length of packers. A new name costs one atomic load while there are none.
	number  atomic.Int32
	mu      sync.Mutex
	packers map[*Packer]struct{}
}

// add adds a packer. A name that the caller does not see after this call wakes the packer.
func (s *sleepers) add(b *Packer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packers == nil {
		s.packers = map[*Packer]struct{}{}
	}
	s.packers[b] = struct{}{}
	s.number.Store(int32(len(s.packers)))
}

// remove removes a packer that waits for no name.
func (s *sleepers) remove(b *Packer) {
	if s.number.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.packers, b)
	s.number.Store(int32(len(s.packers)))
}

// wakeOthers wakes and removes all packers, except the one that has received the name.
func (s *sleepers) wakeOthers(receiver *Packer) {
	if s.number.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.packers {
		if b != receiver {
			delete(s.packers, b)
			b.wake()
		}
	}
	s.number.Store(int32(len(s.packers)))
}
