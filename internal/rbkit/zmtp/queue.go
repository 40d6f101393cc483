// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "sync"

// queue is what one subscriber is still to get, bounded.
type queue struct {
	maxMessages, maxBytes int

	mu      sync.Mutex
	waiting [][]byte // encoded
	bytes   int      // of waiting
	busy    bool     // some were taken that are not sent yet
	ended   bool
	changed sync.Cond // of mu
}

func newQueue(maxMessages, maxBytes int) *queue {
	q := &queue{maxMessages: maxMessages, maxBytes: maxBytes}
	q.changed.L = &q.mu
	return q
}

// put adds an encoded message, which may not be changed any more, and reports whether it
// fits. An empty queue accepts a message of any size.
func (q *queue) put(message []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	full := len(q.waiting) >= q.maxMessages || q.bytes+len(message) > q.maxBytes
	if q.ended || full && len(q.waiting) > 0 {
		return false
	}
	q.waiting = append(q.waiting, message)
	q.bytes += len(message)
	q.changed.Broadcast()
	return true
}

// next waits for messages and returns all of them, or false when the queue has ended. The
// messages of the call before count as sent then. It reuses room.
func (q *queue) next(room [][]byte) (messages [][]byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	q.changed.Broadcast()
	for len(q.waiting) == 0 && !q.ended {
		q.changed.Wait()
	}
	if q.ended {
		return nil, false
	}
	clear(room)
	messages, q.waiting = q.waiting, room[:0]
	q.bytes, q.busy = 0, true
	return messages, true
}

// end ends the queue, and wakes all waiting goroutines.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.changed.Broadcast()
}

// drained waits until all messages are sent, the queue has ended, or stopped returns true.
// wake makes it call stopped again.
func (q *queue) drained(stopped func() bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.waiting) > 0 || q.busy) && !q.ended && !stopped() {
		q.changed.Wait()
	}
}

// wake wakes all waiting goroutines, which check their conditions again.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}
