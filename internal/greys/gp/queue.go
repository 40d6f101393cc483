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

// queue are the replies to one request that wait for whoever asked.
type queue struct {
	// ready has a token when there is something to take.
	ready chan struct{}

	mu sync.Mutex
	// waiting are replies one after another: return code, length, data.
	waiting []byte
	// over is why no reply is added any more.
	over error
	// room counts the bytes of waiting replies, and working those of replies being decoded.
	room, working greys.Room
}

// waitingHeader is how many bytes stand before the data of a reply that waits.
const waitingHeader = 8

func newQueue(conn net.Conn) *queue {
	return &queue{ready: make(chan struct{}, 1), room: greys.RoomOf(conn), working: greys.RoomOf(conn)}
}

// decodedPerByte is how many bytes each byte of a reply takes at most while it is decoded,
// besides itself.
const decodedPerByte = 4

// add adds a reply, unless there are others and they would be more than so many bytes.
func (q *queue) add(code ReturnCode, data []byte, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 && len(q.waiting)+waitingHeader+len(data) > most {
		q.over = fmt.Errorf("%w: more than %d bytes wait", ErrTooSlow, most)
	} else if err := q.room.Hold(len(q.waiting) + waitingHeader + len(data)); err != nil {
		q.over = err
	} else {
		q.waiting = binary.BigEndian.AppendUint32(q.waiting, uint32(code))
		q.waiting = binary.BigEndian.AppendUint32(q.waiting, uint32(len(data)))
		q.waiting = append(q.waiting, data...)
	}
	q.tell()
	return q.over == nil
}

// end says why no reply is added any more: whoever asked is told after those that wait.
func (q *queue) end(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = why
	q.tell()
}

// tell says that there is something to take.
func (q *queue) tell() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take gives all replies, for a buffer to put the next ones into; over is why none follow
// them, nil: they may.
func (q *queue) take(buffer []byte) (replies []byte, over error) {
	if cap(buffer) > keptBuffer {
		buffer = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	replies, q.waiting = q.waiting, buffer[:0]
	if err := q.work(replies); err != nil {
		return nil, err
	}
	return replies, q.over
}

// close gives back the room of a queue that nobody takes replies from any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	// Giving back always succeeds.
	_ = q.room.Hold(0)
	_ = q.working.Hold(0)
}

// work takes memory for decoding replies. The caller holds the lock.
func (q *queue) work(replies []byte) error {
	largest := 0
	for rest := replies; len(rest) > 0; {
		var data []byte
		_, data, rest = nextWaiting(rest)
		largest = max(largest, len(data))
	}
	if err := q.working.Hold(cap(replies) + decodedPerByte*largest); err != nil {
		return err
	}
	return q.room.Hold(0)
}

// nextWaiting parts the first reply from those after it.
func nextWaiting(replies []byte) (code ReturnCode, data, rest []byte) {
	code = ReturnCode(binary.BigEndian.Uint32(replies))
	end := waitingHeader + int(binary.BigEndian.Uint32(replies[4:]))
	return code, replies[waitingHeader:end], replies[end:]
}
