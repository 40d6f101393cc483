// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// inflow is one data connection of an agent. It belongs to the goroutine that reads it.
type inflow struct {
	session *session
	conn    net.Conn
	// i is the connection's number, from 0.
	i int
	// chunk is being filled. It begins with the part of a message that has not arrived whole. offset
	// is the chunk's from the first byte of the connection.
	chunk  *chunk
	offset int64
	// link and outlet received the last data.
	link   *link
	outlet *outlet
	// allowed is for how long the connection may still stay unread because the collector is slow.
	allowed allowance
}

// serve accepts a data connection that has sent hello, and reads it to its end. rest is the data
// behind the hello. The error is the reason of a refusal; without one, accepted is called.
func (s *session) serve(conn net.Conn, rest []byte, accepted func()) error {
	select {
	case <-s.started:
	case <-s.over: // also where it could not be started
		return errRunOver
	}
	i, err := s.data.attach(conn)
	if err != nil {
		return err
	}
	accepted()
	if tcp, ok := socket.Below(conn).(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(readBuffer)
	}
	f := &inflow{
		session: s, conn: conn, i: i, offset: 2, chunk: s.env.chunks.get(len(rest)),
		allowed: newAllowance(s.env.options.MaxWaitPerSecond),
	}
	f.chunk.fill(rest)
	f.openOutlet()
	// Immediately: the agent waits in front of its program's main.
	err = hq.Write(conn, bytefrog.DataHelloReply{})
	if i == 0 {
		s.agent.Joined() // it obeys commands soon
		s.wake()
	}
	if err == nil {
		err = f.read()
	}
	f.ended(err)
	return nil
}

// readBuffer is the size of the system's buffer for an agent's data connection, in bytes; the system
// may hold twice as much. By itself it would hold up to net.ipv4.tcp_rmem, many MiB. The collector
// would have to read all of that before a suspended agent resumes.
const readBuffer = 512 * kib

// openOutlet opens the connection's outlet to the collector.
func (f *inflow) openOutlet() {
	f.session.passing.RLock()
	defer f.session.passing.RUnlock()
	if l := f.session.link; l != nil {
		f.outletOf(l)
	}
}

// read reads the connection to its end. It returns the error that ended it.
func (f *inflow) read() error {
	if err := f.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	for {
		if f.chunk.end > 0 {
			if err := f.forward(); err != nil {
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

// forward forwards all whole messages, and waits for the collector as long as the options allow.
func (f *inflow) forward() error {
	outlet, err := f.putMessages()
	s, l := f.session, f.link
	if err != nil {
		return connreader.BadDataAt(f.conn, f.offset, err)
	}
	if outlet == nil {
		s.free(nil, s.setHeld(nil)) // the keeper may be connecting for long
		return nil
	}
	s.bound(l)
	if !outlet.awaitRoom(s.env.options.MaxWait, &f.allowed) {
		outlet.rise()
	}
	if l.waiting.Load() >= l.flood {
		s.stall(l)
	}
	return nil
}

// putMessages puts all whole messages into the outlet, which it returns; nil: there is no collector.
func (f *inflow) putMessages() (*outlet, error) {
	s := f.session
	s.passing.RLock()
	defer s.passing.RUnlock()
	b := f.chunk.bytes()
	l := s.link
	var w walked
	var err error
	if l != nil && l.needed {
		w, err = walkTranslated(b, s.Next(), s.names, l.translation)
	} else {
		w, err = walk(b, s.Next(), s.names)
	}
	s.Advance(w.next, uint64(w.events))
	if w.events > 0 && !s.agent.IsPrepared() {
		s.agent.SetPrepared()
	}
	s.data.changed.Notify()
	s.env.counts.Bytes.Add(uint64(w.taken))
	if w.reported {
		s.agent.End()
	}
	rest := b[w.taken:]
	f.offset += int64(w.taken)
	if l == nil {
		s.env.counts.Dropped.Add(uint64(w.events))
		f.keepRest(f.chunk, rest)
		return nil, err
	}
	s.env.counts.Dropped.Add(uint64(w.dropped))
	s.env.counts.Passed.Add(uint64(w.events - w.dropped))
	o := f.outletOf(l)
	if w.kept > 0 {
		whole := f.chunk
		whole.end = w.kept
		f.putAndKeepRest(o, whole, rest)
	} else {
		f.keepRest(f.chunk, rest)
	}
	return o, err
}

// putAndKeepRest puts the whole messages of a chunk into an outlet. The rest begins the next chunk.
func (f *inflow) putAndKeepRest(o *outlet, whole *chunk, rest []byte) {
	var few [bytefrog.MaxEventSize]byte
	if len(rest) > len(few) {
		next := f.session.env.chunks.get(roomFor(rest))
		next.fill(rest)
		f.session.env.chunks.put(o.put(whole))
		f.chunk = next
		return
	}
	n := copy(few[:], rest)
	f.chunk = o.put(whole)
	f.chunk.end = copy(f.chunk.buf, few[:n])
}

// keepRest continues with the rest of a chunk. All other bytes are dropped.
func (f *inflow) keepRest(c *chunk, rest []byte) {
	if size := roomFor(rest); size > len(c.buf) {
		bigger := f.session.env.chunks.get(size)
		bigger.fill(rest)
		f.chunk = bigger
		return
	}
	c.end = copy(c.buf, rest)
	f.chunk = c
}

// roomFor returns the size of a chunk that begins with a part of a message.
func roomFor(rest []byte) int {
	if len(rest) < chunkBytes {
		return chunkBytes
	}
	return bytefrog.MaxMessageSize(bytefrog.MaxString) + 1
}

// outletOf returns the connection's outlet in a link. The collector may have another number of
// connections than the agent.
func (f *inflow) outletOf(l *link) *outlet {
	if f.link != l {
		f.link, f.outlet = l, l.openData(f.i%len(l.data))
	}
	return f.outlet
}

// ended closes the connection when it has ended, and the collector's connections that get no more
// data.
func (f *inflow) ended(err error) {
	s := f.session
	defer s.data.reading.Done()
	defer s.wake()
	var bad *connreader.BadData
	cut := false
	switch {
	case errors.As(err, &bad):
		s.giveUpBadData("data", err)
		s.env.linger(f.conn)
	case f.chunk.end > 0 || !errors.Is(err, io.EOF):
		cut = true
		s.data.wasCut.Store(true)
	}
	none := s.data.detach(f.conn)
	s.env.chunks.put(f.chunk)
	s.passing.RLock()
	defer s.passing.RUnlock()
	switch l := s.link; {
	case l == nil:
	case !l.needed:
		f.outletOf(l).end(cut) // each has its own
	case none:
		for _, o := range l.outlets()[1:] {
			o.end(s.data.wasCut.Load())
		}
	}
}

// end closes the connection after all data was written. If the agent's connection was cut off, the collector's
// connection ends inside a message too, as without a guard: the collector gets only its first byte. Nothing may be put
// in afterwards: the collector would read it as the rest.
func (o *outlet) end(cut bool) {
	if cut {
		o.send([]byte{byte(bytefrog.TypeMethodEntry)})
	}
	o.close()
}
