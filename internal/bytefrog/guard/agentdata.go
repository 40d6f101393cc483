// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// inflow is one data connection of an agent. It is for the goroutine that reads it.
type inflow struct {
	session *session
	conn    net.Conn
	// i is the how-manieth of the agent's it is, from 0.
	i int
	// chunk is what is being filled; its beginning is what has come of a message that has
	// not come whole. offset is that of the chunk from the first byte of the connection.
	chunk  *chunk
	offset int64
	// link and outlet are where it was passed to last.
	link   *link
	outlet *outlet
	// allowed is for how long the connection may still not be read because the collector
	// is slow.
	allowed allowance
}

// serve takes a data connection that has said hello into the session, and reads it to its
// end. rest is what came with the hello. The error says why it is refused; isTaken is called
// when it is not.
func (s *session) serve(conn net.Conn, rest []byte, isTaken func()) error {
	select {
	case <-s.started:
	case <-s.over: // also where it could not be started
		return errRunOver
	}
	i, err := s.attach(conn)
	if err != nil {
		return err
	}
	isTaken()
	if tcp, ok := netConn(conn).(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(readBuffer)
	}
	f := &inflow{
		session: s, conn: conn, i: i, offset: 2, chunk: s.guard.chunks.take(len(rest)),
		allowed: newAllowance(s.guard.options.MaxWaitPerSecond),
	}
	f.chunk.add(rest)
	f.open()
	// Before anything is waited for: the agent waits in front of its program's main.
	err = writeMessage(conn, bytefrog.DataHelloReply{})
	s.isReady()
	if err == nil {
		err = f.read()
	}
	f.ended(err)
	return nil
}

// readBuffer is what the system is asked to hold of an agent's data connection that is not read,
// in bytes; it may hold twice as much. By itself it would hold up to net.ipv4.tcp_rmem, many MiB,
// all of which would have to be taken before an agent that was suspended goes on.
const readBuffer = 512 * kib

// open has the connection's way to the collector opened.
func (f *inflow) open() {
	f.session.passing.RLock()
	defer f.session.passing.RUnlock()
	if l := f.session.link; l != nil {
		f.outletOf(l)
	}
}

// isReady says that the first data connection has come. The agent takes orders soon: at its
// first class report or event, or after a while (isPrepared).
func (s *session) isReady() {
	s.mu.Lock()
	first := !isClosed(s.joined)
	if first {
		close(s.joined)
		s.preparing = time.AfterFunc(s.guard.timing.prepared, s.isPrepared)
	}
	s.mu.Unlock()
	if first {
		s.wake()
	}
}

// isPrepared says that the agent takes orders now. A suspend that it reads before its buffers
// listen to its mode holds no event back, and the next one ends its tracing. They do when it
// has opened its data connections; its first class report or event comes after that.
func (s *session) isPrepared() {
	if !s.prepared.Swap(true) {
		s.tracing.ready()
		s.wake()
	}
}

// read reads the connection to its end, of which the error says how it was.
func (f *inflow) read() error {
	if err := f.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	for {
		if f.chunk.end > 0 {
			if err := f.pass(); err != nil {
				return err
			}
		}
		n, err := f.conn.Read(f.chunk.buf[f.chunk.end:])
		f.chunk.end += n
		if n == 0 && err != nil {
			return err
		}
	}
}

// pass passes on all messages that are whole, and waits for the collector where that is
// what the agent has to feel.
func (f *inflow) pass() error {
	outlet, err := f.passOn()
	s := f.session
	if err != nil {
		return badAt(f.conn, f.offset, err)
	}
	if outlet == nil {
		s.giveWay(nil, s.weigh(nil)) // the keeper may be connecting for long
		return nil
	}
	l := outlet.link
	s.bound(l)
	if !outlet.awaitRoom(s.guard.options.MaxWait, &f.allowed) {
		outlet.rise()
	}
	if l.waiting.Load() >= l.flood {
		s.stall(l)
	}
	return nil
}

// passOn puts what is whole into the outlet, which it gives; nil where there is none.
func (f *inflow) passOn() (*outlet, error) {
	s := f.session
	s.passing.RLock()
	defer s.passing.RUnlock()
	b := f.chunk.bytes()
	l := s.link
	var w walked
	var err error
	if l != nil && l.needed {
		w, err = walkTranslated(b, s.next.Load(), s.names, l.translation)
	} else {
		w, err = walk(b, s.next.Load(), s.names)
	}
	s.advance(w.next, uint64(w.events))
	if w.events > 0 && !s.prepared.Load() {
		s.isPrepared()
	}
	s.guard.counts.Bytes.Add(uint64(w.taken))
	if w.reported {
		s.tracing.end()
	}
	rest := b[w.taken:]
	f.offset += int64(w.taken)
	if l == nil {
		s.guard.counts.Dropped.Add(uint64(w.events))
		f.keep(f.chunk, rest)
		return nil, err
	}
	s.guard.counts.Dropped.Add(uint64(w.dropped))
	s.guard.counts.Passed.Add(uint64(w.events - w.dropped))
	o := f.outletOf(l)
	if w.kept > 0 {
		whole := f.chunk
		whole.end = w.kept
		f.keepBehind(o, whole, rest)
	} else {
		f.keep(f.chunk, rest)
	}
	return o, err
}

// keepBehind puts the whole messages of a chunk into an outlet, and goes on with the rest
// of it.
func (f *inflow) keepBehind(o *outlet, whole *chunk, rest []byte) {
	var few [bytefrog.MaxEventSize]byte
	if len(rest) > len(few) {
		next := f.session.guard.chunks.take(roomFor(rest))
		next.add(rest)
		f.session.guard.chunks.put(o.put(whole))
		f.chunk = next
		return
	}
	n := copy(few[:], rest)
	f.chunk = o.put(whole)
	f.chunk.end = copy(f.chunk.buf, few[:n])
}

// keep goes on with the rest of a chunk, of which all else was thrown away.
func (f *inflow) keep(c *chunk, rest []byte) {
	if size := roomFor(rest); size > len(c.buf) {
		bigger := f.session.guard.chunks.take(size)
		bigger.add(rest)
		f.chunk = bigger
		return
	}
	c.end = copy(c.buf, rest)
	f.chunk = c
}

// roomFor is how large a chunk has to be that begins with a part of a message.
func roomFor(rest []byte) int {
	if len(rest) < chunkBytes {
		return chunkBytes
	}
	return bytefrog.MaxMessageSize(bytefrog.MaxString) + 1
}

// outletOf is where the connection goes in a link: the collector may have another number
// of connections than the agent.
func (f *inflow) outletOf(l *link) *outlet {
	if f.link != l {
		f.link, f.outlet = l, l.openData(f.i%len(l.data))
	}
	return f.outlet
}

// ended says that the connection has ended, so that those to the collector end that
// nothing more goes to.
func (f *inflow) ended(err error) {
	s := f.session
	defer s.reading.Done()
	defer s.wake()
	var bad *badData
	cut := false
	switch {
	case errors.As(err, &bad):
		s.giveUpBadData("data", err)
		s.guard.linger(f.conn)
	case f.chunk.end > 0 || !errors.Is(err, io.EOF):
		cut = true
		s.wasCut.Store(true)
	}
	none := s.detach(f.conn)
	s.guard.chunks.put(f.chunk)
	s.passing.RLock()
	defer s.passing.RUnlock()
	switch l := s.link; {
	case l == nil:
	case !l.needed:
		f.outletOf(l).end(cut) // each has its own
	case none:
		for _, o := range l.outlets()[1:] {
			o.end(s.wasCut.Load())
		}
	}
}

// end closes the connection when all was written. A connection of the agent that was cut off
// looks so to the collector, as it would without us: it ends inside a message, of which it
// gets the first byte. Nothing may be put in any more, or it would be taken for the rest.
func (o *outlet) end(cut bool) {
	if cut {
		o.send([]byte{byte(bytefrog.TypeMethodEntry)})
	}
	o.close()
}
