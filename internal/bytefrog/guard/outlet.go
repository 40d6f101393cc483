// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net"
	"sync"
	"time"
)

// outlet is the writing side of one connection to a collector: what is put in waits until
// it is written, by a goroutine of the outlet's own. So who puts in never waits for the
// collector, unless it asks to. Where nothing waits and the system has room, who puts in
// writes it there itself: that waits for nobody, and waking the goroutine costs more than all
// else that is done with the bytes.
type outlet struct {
	link *link

	mu      sync.Mutex
	changed *sync.Cond
	queue   []*chunk
	// waiting is how many bytes are in the queue or being written.
	waiting int64
	room    room
	// opened says that the connection is open; closing that it is to be closed when all
	// was written; over that nothing is written any more.
	opened, closing, over bool
	// conn is the connection once it is open; socket writes to it as much as there is room
	// for, nil where that can't be, as with TLS.
	conn   net.Conn
	socket *socket
	// ended is closed with the goroutine.
	ended chan struct{}
}

// pieceBytes is how much is written at once where pressureBytes wait, so that what the
// collector takes is seen soon. A socket says it by itself.
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

// put gives a chunk to be written. It gives back one to go on with: the same, emptied,
// where what waits has room for what is in it.
func (o *outlet) put(c *chunk) *chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || o.closing {
		o.link.lostBytes.Add(int64(c.end))
		c.empty()
		return c
	}
	if o.writeAtOnce(c) {
		c.empty()
		return c
	}
	n := int64(len(c.bytes()))
	o.waiting += n
	if o.link.waiting.Add(n) == n {
		o.link.progressed() // it can't have taken what was not there
	}
	// The first may be the one that is being written. All others are filled, so that what
	// waits takes no more memory than it has to.
	if last := len(o.queue) - 1; last > 0 && o.queue[last].left() >= fillBytes {
		if c.drop(o.queue[last].add(c.bytes())); c.end == 0 {
			return c
		}
	}
	o.queue = append(o.queue, c)
	o.changed.Broadcast()
	return o.link.chunks.take(chunkBytes)
}

// writeAtOnce writes what the system has room for of a chunk in front of which nothing
// waits, and reports whether that is all. The caller holds the lock. That the connection is
// broken is found by the goroutine, which then has something to write.
func (o *outlet) writeAtOnce(c *chunk) bool {
	if o.socket == nil || len(o.queue) > 0 {
		return false
	}
	c.begin = o.socket.writeAtOnce(c.bytes())
	if c.begin > 0 && o != o.link.control {
		o.recede(int64(c.begin))
	}
	return c.begin == c.end
}

// send gives bytes, which are copied, to be written.
func (o *outlet) send(b []byte) {
	c := o.link.chunks.take(len(b))
	c.add(b)
	o.link.chunks.put(o.put(c))
}

// awaitRoom waits until no more waits than may, or nobody is to wait for the collector. It
// reports false when the collector has taken nothing at all for the time patience, or no
// more waiting is allowed.
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

// rise has some more read from the agent, whatever the collector takes.
func (o *outlet) rise() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.room.grow(o.waiting)
	o.changed.Broadcast()
}

// recede says that the collector took n bytes of data, of which the bytes that wait are left.
// The caller holds the lock.
func (o *outlet) recede(n int64) {
	o.link.progressed()
	o.room.shrink(n, o.waiting)
}

// wake has those look who wait.
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

// abandon closes the connection now; what waits is thrown away.
func (o *outlet) abandon() {
	if conn := o.empty(); conn != nil {
		_ = conn.Close() // which may take its time
	}
}

// empty throws away what waits, and gives the connection if it is open.
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
	if err == nil && !o.take(conn) {
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
	o.link.lose(lossOf(lostConnection, err))
	o.abandon()
}

// take takes the connection, and reports false when it isn't wanted any more.
func (o *outlet) take(conn net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return false
	}
	o.conn, o.opened, o.socket = conn, true, newSocket(conn)
	o.link.unopened.Add(-1)
	o.link.news()
	return true
}

// next waits for something to write, and gives nil when nothing will come.
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
		o.took(int64(n))
		if err != nil {
			return err
		}
	}
	return nil
}

// writePart writes some of b, and says how much.
func (o *outlet) writePart(conn net.Conn, b []byte) (n int, err error) {
	if o.socket != nil {
		return o.socket.write(b)
	}
	if o.link.waiting.Load() > pressureBytes {
		b = b[:min(len(b), pieceBytes)]
	}
	return conn.Write(b)
}

// took says that the collector took n bytes.
func (o *outlet) took(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.waiting -= n
	left := o.link.waiting.Add(-n)
	if o != o.link.control {
		// The few bytes of heartbeats find room in the systems' buffers for days.
		o.recede(n)
	}
	if left == 0 {
		o.link.news()
	}
	o.changed.Broadcast()
}

// written takes a chunk out of the queue.
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
