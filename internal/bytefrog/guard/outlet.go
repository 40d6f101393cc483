// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net"
	"sync"
	"time"
)

// outlet is the writing side of one connection to a collector. Chunks wait in it until its own
// goroutine writes them. So put never waits for the collector; awaitRoom does. Where nothing
// waits and the system has room, put writes the chunk itself: that does not block, and waking the
// goroutine costs more than all other work with the bytes.
type outlet struct {
	link *link

	mu      sync.Mutex
	changed *sync.Cond
	queue   []*chunk
	// waiting is how many bytes are in the queue or being written.
	waiting int64
	room    room
	// opened says that the connection is open; closing that it will be closed when all was written;
	// over that nothing is written any more.
	opened, closing, over bool
	// conn is the connection once it is open; raw writes as much to it as there is room for, and
	// is nil where that is impossible, as with TLS.
	conn net.Conn
	raw  *rawWriter
	// ended is closed with the goroutine.
	ended chan struct{}
}

// pieceBytes is how much is written in one step where pressureBytes wait, so that the guard soon
// sees how fast the collector reads. A socket reports it by itself.
const pieceBytes, pressureBytes = 16 * kib, 512 * kib

func newOutlet(l *link) *outlet {
	o := &outlet{link: l, room: room{queue: l.queue, rise: l.rise}, ended: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// start starts the goroutine, which opens the connection.
func (o *outlet) start(open func() (net.Conn, error)) {
	o.link.writing.Add(1)
	go o.run(open)
}

// put accepts a chunk to be written. It returns the next chunk to fill: the same, emptied, where
// the waiting chunks have room for its bytes.
func (o *outlet) put(c *chunk) *chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || o.closing {
		o.link.lostBytes.Add(int64(c.end))
		c.empty()
		return c
	}
	if o.writeWithoutWait(c) {
		c.empty()
		return c
	}
	n := int64(len(c.bytes()))
	o.waiting += n
	if o.link.waiting.Add(n) == n {
		o.link.progressed() // before, there was nothing to read
	}
	// The first chunk may be the one that is being written. All others are filled, so that waiting
	// data takes no more memory than it must.
	if last := len(o.queue) - 1; last > 0 && o.queue[last].left() >= fillBytes {
		if c.drop(o.queue[last].add(c.bytes())); c.end == 0 {
			return c
		}
	}
	o.queue = append(o.queue, c)
	o.changed.Broadcast()
	return o.link.chunks.take(chunkBytes)
}

// writeWithoutWait writes as much of a chunk as the system has room for, if nothing waits before it. It
// reports whether that is all. The caller holds the lock. The goroutine finds a broken connection
// when it has something to write.
func (o *outlet) writeWithoutWait(c *chunk) bool {
	if o.raw == nil || len(o.queue) > 0 {
		return false
	}
	c.begin = o.raw.writeWithoutWait(c.bytes())
	if c.begin > 0 && o != o.link.control {
		o.recede(int64(c.begin))
	}
	return c.begin == c.end
}

// send copies bytes to be written.
func (o *outlet) send(b []byte) {
	c := o.link.chunks.take(len(b))
	c.add(b)
	o.link.chunks.put(o.put(c))
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
		since := o.link.lastProgress()
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
	return o.room.isLeft(o.waiting) || o.over || o.link.held.Load()
}

// rise makes room for some more data of the agent, however slowly the collector reads.
func (o *outlet) rise() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.room.grow(o.waiting)
	o.changed.Broadcast()
}

// recede notes that the collector has read n bytes of data. The caller holds the lock.
func (o *outlet) recede(n int64) {
	o.link.progressed()
	o.room.shrink(n, o.waiting)
}

// wake wakes those that wait for room.
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
		_ = conn.Close() // which may take its time
	}
}

// empty drops waiting data, and returns the connection if it is open.
func (o *outlet) empty() net.Conn {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.link.lostBytes.Add(o.waiting)
	o.queue = nil
	o.link.waiting.Add(-o.waiting)
	o.waiting = 0
	o.changed.Broadcast()
	return o.conn
}

// run is the goroutine.
func (o *outlet) run(open func() (net.Conn, error)) {
	defer o.link.writing.Done()
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
	o.link.lose(connectionLoss(err))
	o.abandon()
}

// setOpen accepts the connection, and reports false when it isn't wanted any more.
func (o *outlet) setOpen(conn net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return false
	}
	o.conn, o.opened, o.raw = conn, true, newRawWriter(conn)
	o.link.unopened.Add(-1)
	o.link.wakeIfDrained()
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
	if o.link.waiting.Load() > pressureBytes {
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
	left := o.link.waiting.Add(-n)
	if o != o.link.control {
		// The systems' buffers have room for the few bytes of heartbeats for days.
		o.recede(n)
	}
	if left == 0 {
		o.link.wakeIfDrained()
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
		o.link.chunks.put(c)
	}
}
