// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net"
	"sync"
	"time"
)

// outlet is the writing side of one connection to a collector. Chunks wait in it until its own goroutine writes them.
// So put never waits for the collector; awaitRoom does. If no chunk waits and the system has room, put writes the chunk
// itself. That does not block, and to wake the goroutine would cost more than all other work with the bytes.
type outlet struct {
	flow *flow
	// isData: it is a data connection. failed is called with the error of a write.
	isData bool
	failed func(error)

	mu      sync.Mutex
	changed *sync.Cond
	queue   []*chunk
	// waiting is how many bytes are in the queue or being written.
	waiting int64
	room    room
	// opened: the connection is open. closing: it is closed after all data was written. over: nothing is written any
	// more.
	opened, closing, over bool
	// conn is the connection once it is open. raw writes as much to it as there is room for; it is nil if that is
	// impossible, as with TLS.
	conn net.Conn
	raw  *rawWriter
	// ended is closed at the end of the goroutine.
	ended chan struct{}
}

// pieceBytes bounds one write while more than pressureBytes wait. So the guard soon sees how fast the collector reads.
// A plain socket shows it by itself.
const pieceBytes, pressureBytes = 16 * kib, 512 * kib

func newOutlet(f *flow, isData bool, failed func(error)) *outlet {
	o := &outlet{flow: f, isData: isData, failed: failed, room: room{queue: f.queue, rise: f.rise}, ended: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// start starts the goroutine, which opens the connection.
func (o *outlet) start(open func() (net.Conn, error)) {
	o.flow.writing.Add(1)
	go o.run(open)
}

// put accepts a chunk to be written. It returns the next chunk to fill: the same, emptied, where
// the waiting chunks have room for its bytes.
func (o *outlet) put(c *chunk) *chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || o.closing {
		o.flow.lostBytes.Add(int64(c.end))
		c.empty()
		return c
	}
	if o.writeWithoutWait(c) {
		c.empty()
		return c
	}
	n := int64(len(c.bytes()))
	o.waiting += n
	if o.flow.waiting.Add(n) == n {
		o.flow.progressed() // before, there was nothing to read
	}
	// The first chunk may be the one that is being written. All others are filled, so that waiting data uses no more
	// memory than necessary.
	if last := len(o.queue) - 1; last > 0 && o.queue[last].left() >= fillBytes {
		if c.drop(o.queue[last].fill(c.bytes())); c.end == 0 {
			return c
		}
	}
	o.queue = append(o.queue, c)
	o.changed.Broadcast()
	return o.flow.chunks.get(chunkBytes)
}

// writeWithoutWait writes as much of a chunk as the system has room for, if nothing waits before it. It
// reports whether that is all. The caller holds the lock. The goroutine finds a broken connection
// when it has something to write.
func (o *outlet) writeWithoutWait(c *chunk) bool {
	if o.raw == nil || len(o.queue) > 0 {
		return false
	}
	c.begin = o.raw.writeWithoutWait(c.bytes())
	if c.begin > 0 && o.isData {
		o.recede(int64(c.begin))
	}
	return c.begin == c.end
}

// send copies bytes to be written.
func (o *outlet) send(b []byte) {
	c := o.flow.chunks.get(len(b))
	c.fill(b)
	o.flow.chunks.put(o.put(c))
}

// awaitRoom waits until there is room for more data, or waiting has become useless. It reports
// false when the collector has read nothing at all for the time patience, or no more waiting is
// allowed.
func (o *outlet) awaitRoom(patience time.Duration, allowed *allowance) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hasRoom() {
		return true
	}
	from := time.Now()
	most := allowed.have(from)
	defer func() { allowed.spend(from, time.Now()) }()
	for !o.hasRoom() {
		since := o.flow.lastProgress()
		if since.Before(from) {
			since = from
		}
		left := min(patience-time.Since(since), most-time.Since(from))
		if left <= 0 {
			return false
		}
		timer := time.AfterFunc(left, o.wake)
		o.changed.Wait()
		timer.Stop()
	}
	return true
}

func (o *outlet) hasRoom() bool {
	return o.room.isLeft(o.waiting) || o.over || o.flow.isRest()
}

// rise makes room for more data of the agent, even if the collector reads nothing.
func (o *outlet) rise() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.room.grow(o.waiting)
	o.changed.Broadcast()
}

// recede notes that the collector has read n bytes of data. The caller holds the lock.
func (o *outlet) recede(n int64) {
	o.flow.progressed()
	o.room.shrink(n, o.waiting)
}

// wake wakes goroutines that wait for room.
func (o *outlet) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed.Broadcast()
}

// close closes the connection when all was written. It doesn't wait.
func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.changed.Broadcast()
}

// abandon closes the connection now; waiting data is dropped.
func (o *outlet) abandon() {
	if conn := o.empty(); conn != nil {
		_ = conn.Close() // which can take some time
	}
}

// empty drops waiting data, and returns the connection if it is open.
func (o *outlet) empty() net.Conn {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.flow.lostBytes.Add(o.waiting)
	o.queue = nil
	o.flow.waiting.Add(-o.waiting)
	o.waiting = 0
	o.changed.Broadcast()
	return o.conn
}

// run is the goroutine.
func (o *outlet) run(open func() (net.Conn, error)) {
	defer o.flow.writing.Done()
	defer close(o.ended)
	conn, err := open()
	if err == nil && !o.setOpen(conn) {
		_ = conn.Close()
		return
	}
	for err == nil {
		c := o.next()
		if c == nil {
			_ = conn.Close()
			return
		}
		if err = o.write(conn, c); err == nil {
			o.written(c)
		}
	}
	o.failed(err)
	o.abandon()
}

// setOpen stores the connection. It reports false if the outlet was abandoned.
func (o *outlet) setOpen(conn net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return false
	}
	o.conn, o.opened, o.raw = conn, true, newRawWriter(conn)
	o.flow.unopened.Add(-1)
	o.flow.wakeIfDrained()
	return true
}

// next waits for a chunk to write, and returns nil when none will follow.
func (o *outlet) next() *chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closing && !o.over {
		o.changed.Wait()
	}
	if len(o.queue) == 0 {
		o.over = true
		return nil
	}
	return o.queue[0]
}

// write writes a chunk, which stays the first of the queue meanwhile.
func (o *outlet) write(conn net.Conn, c *chunk) error {
	for b := c.bytes(); len(b) > 0; {
		n, err := o.writePart(conn, b)
		b = b[n:]
		o.noteRead(int64(n))
		if err != nil {
			return err
		}
	}
	return nil
}

// writePart writes a part of b, and returns its length.
func (o *outlet) writePart(conn net.Conn, b []byte) (n int, err error) {
	if o.raw != nil {
		return o.raw.write(b)
	}
	if o.flow.waiting.Load() > pressureBytes {
		b = b[:min(len(b), pieceBytes)]
	}
	return conn.Write(b)
}

// noteRead notes that the collector has read n bytes.
func (o *outlet) noteRead(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.waiting -= n
	left := o.flow.waiting.Add(-n)
	if o.isData {
		// Heartbeats do not count: the systems' buffers have room for days of them.
		o.recede(n)
	}
	if left == 0 {
		o.flow.wakeIfDrained()
	}
	o.changed.Broadcast()
}

// written removes a chunk from the queue.
func (o *outlet) written(c *chunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 && o.queue[0] == c {
		o.queue[0] = nil
		o.queue = o.queue[1:]
		if len(o.queue) == 0 {
			o.queue = nil
		}
		o.flow.chunks.put(c)
	}
}
