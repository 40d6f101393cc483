// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"github.com/callbraid/callbraid/internal/greys"
)

// queue holds replies to one request until the caller reads them.
type queue struct {
	// ready has a token if there are replies or the queue has ended.
	ready chan struct{}

	mu sync.Mutex
	// waiting are the encoded replies: return code, length and data of each.
	waiting []byte
	// over is the reason why no more replies are added.
	over error
	// memory counts the bytes of waiting replies; working counts the bytes of replies that are being decoded.
	memory, working greys.Reservation
}

// waitingHeader is the length of the header of a waiting reply.
const waitingHeader = 8

func newQueue(conn net.Conn) *queue {
	return &queue{ready: make(chan struct{}, 1), memory: greys.ReservationOf(conn), working: greys.ReservationOf(conn)}
}

// decodedPerByte is the maximum memory for each byte of a reply while it is decoded, without the byte itself.
const decodedPerByte = 4

// push adds a reply. It fails if other replies wait and all together exceed most bytes.
func (q *queue) push(code ReturnCode, data []byte, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 && len(q.waiting)+waitingHeader+len(data) > most {
		q.over = fmt.Errorf("%w: more than %d bytes wait", ErrTooSlow, most)
	} else if err := q.memory.Resize(len(q.waiting) + waitingHeader + len(data)); err != nil {
		q.over = err
	} else {
		q.waiting = binary.BigEndian.AppendUint32(q.waiting, uint32(code))
		q.waiting = binary.BigEndian.AppendUint32(q.waiting, uint32(len(data)))
		q.waiting = append(q.waiting, data...)
	}
	q.signal()
	return q.over == nil
}

// end sets the reason why no more replies are added. The caller receives it after the waiting replies.
func (q *queue) end(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = why
	q.signal()
}

// signal wakes the caller.
func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// popAll returns all replies and reuses buffer for the next ones. Over is the reason why no more follow; nil means that
// more may follow.
func (q *queue) popAll(buffer []byte) (replies []byte, over error) {
	if cap(buffer) > keptBuffer {
		buffer = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	replies, q.waiting = q.waiting, buffer[:0]
	if err := q.reserveDecoding(replies); err != nil {
		return nil, err
	}
	return replies, q.over
}

// close releases the memory of a queue whose caller has returned.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	// A release never fails.
	_ = q.memory.Resize(0)
	_ = q.working.Resize(0)
}

// reserveDecoding moves the memory of replies to the decoding account. The caller holds the lock.
func (q *queue) reserveDecoding(replies []byte) error {
	largest := 0
	for rest := replies; len(rest) > 0; {
		var data []byte
		_, data, rest = nextWaiting(rest)
		largest = max(largest, len(data))
	}
	if err := q.working.Resize(cap(replies) + decodedPerByte*largest); err != nil {
		return err
	}
	return q.memory.Resize(0)
}

// nextWaiting splits the first reply from the replies after it.
func nextWaiting(replies []byte) (code ReturnCode, data, rest []byte) {
	code = ReturnCode(binary.BigEndian.Uint32(replies))
	end := waitingHeader + int(binary.BigEndian.Uint32(replies[4:]))
	return code, replies[waitingHeader:end], replies[end:]
}
