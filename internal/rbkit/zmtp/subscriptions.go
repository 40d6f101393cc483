// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// subscriptions are the prefixes of one subscriber, and their numbers.
type subscriptions struct {
	mu     sync.Mutex
	counts map[string]int
	bytes  int
}

// Bounds of the subscriptions of one subscriber.
const (
	maxPrefixes    = 4096
	maxPrefixBytes = 1 << 20
)

func (s *subscriptions) subscribe(prefix []byte) error {
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

// unsubscribe removes one subscription of the prefix, if there is one.
func (s *subscriptions) unsubscribe(prefix []byte) {
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

// count returns the number of subscriptions.
func (s *subscriptions) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.counts {
		n += c
	}
	return n
}

// match reports whether the subscriber receives messages that begin with this part.
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

// command carries out SUBSCRIBE and CANCEL (RFC 37), and skips other commands.
func (s *subscriptions) command(c command) error {
	switch c.name {
	case commandSubscribe:
		return s.subscribe(c.data)
	case commandCancel:
		s.unsubscribe(c.data)
	}
	return nil
}

// message carries out a subscription of version 3.0. As libzmq, it also accepts it from peers of
// 3.1.
func (s *subscriptions) message(m Message) error {
	if len(m) == 1 && len(m[0]) > 0 {
		switch m[0][0] {
		case subscribeByte:
			return s.subscribe(m[0][1:])
		case cancelByte:
			s.unsubscribe(m[0][1:])
			return nil
		}
	}
	return errors.New("expected a message of one part that begins with 0 or 1, a subscription, got " + quoted(m[0]))
}
