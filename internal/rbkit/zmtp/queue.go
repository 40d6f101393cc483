// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "sync"

// queue has the messages that one subscriber has not received, bounded.
type queue struct {
	maxMessages, maxBytes int

	mu      sync.Mutex
	waiting [][]byte // encoded
	bytes   int      // of waiting
	busy    bool     // messages of the last call of dequeueAll are not sent yet
	ended   bool
	changed sync.Cond // of mu
}

func newQueue(maxMessages, maxBytes int) *queue {
	q := &queue{maxMessages: maxMessages, maxBytes: maxBytes}
	q.changed.L = &q.mu
	return q
}

// enqueue adds an encoded message, which must not change any more, and reports whether it fits.
// An empty queue accepts a message of any size.
func (q *queue) enqueue(message []byte) bool {
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

// dequeueAll waits for messages and returns all of them, or false when the queue has ended. The
// messages of the previous call count as sent. It reuses room.
func (q *queue) dequeueAll(room [][]byte) (messages [][]byte, ok bool) {
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
