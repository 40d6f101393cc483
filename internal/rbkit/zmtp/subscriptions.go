// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// subscriptions are the prefixes that one subscriber asked for, and how often.
type subscriptions struct {
	mu     sync.Mutex
	counts map[string]int
	bytes  int
}

// What one subscriber may ask for.
const (
	maxPrefixes    = 4096
	maxPrefixBytes = 1 << 20
)

func (s *subscriptions) add(prefix []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[string(prefix)] == 0 {
		if len(s.counts) >= maxPrefixes || s.bytes+len(prefix) > maxPrefixBytes {
			return fmt.Errorf("expected at most %d subscriptions of %d bytes together, got more", maxPrefixes, maxPrefixBytes)
		}
		s.bytes += len(prefix)
	}
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[string(prefix)]++
	return nil
}

// remove takes one subscription of the prefix back; it is no error if there is none.
func (s *subscriptions) remove(prefix []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.counts[string(prefix)] {
	case 0:
	case 1:
		delete(s.counts, string(prefix))
		s.bytes -= len(prefix)
	default:
		s.counts[string(prefix)]--
	}
}

// count is how many there are that were not taken back.
func (s *subscriptions) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.counts {
		n += c
	}
	return n
}

// match reports whether a message was asked for that begins with this part.
func (s *subscriptions) match(part []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for prefix := range s.counts {
		if bytes.HasPrefix(part, []byte(prefix)) {
			return true
		}
	}
	return false
}

// command obeys SUBSCRIBE and CANCEL (RFC 37). Others are passed over.
func (s *subscriptions) command(c command) error {
	switch c.name {
	case commandSubscribe:
		return s.add(c.data)
	case commandCancel:
		s.remove(c.data)
	}
	return nil
}

// message obeys a subscription as 3.0 has it. libzmq takes those from peers of 3.1 too.
func (s *subscriptions) message(m Message) error {
	if len(m) == 1 && len(m[0]) > 0 {
		switch m[0][0] {
		case subscribeByte:
			return s.add(m[0][1:])
		case cancelByte:
			s.remove(m[0][1:])
			return nil
		}
	}
	return errors.New("expected a message of one part that begins with 0 or 1, a subscription, got " + quoted(m[0]))
}
