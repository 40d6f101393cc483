// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package connreader reads Bytefrog messages from one connection: into a buffer that grows up to
// the longest message, with deadlines for the caller and for each message. It reports a wrong byte
// with its position, and whether all received bytes were processed. The receiver and the guard use it.
//
// The package does not know what a message means: its user decodes the bytes.
package connreader

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// Settings bound what a Reader holds and how long it waits.
type Settings struct {
	// Buffer is the first size of the buffer, in bytes. It grows up to MaxMessage.
	Buffer, MaxMessage int
	// MessageTimeout is how long the rest of a message may take after its first bytes. Zero: forever.
	MessageTimeout time.Duration
	// Deadline is the read deadline that the connection already has.
	Deadline time.Time
}

// Reader reads one connection. It belongs to one goroutine, except TakeAway, Taken, EndBy, Wake, Conn
// and CaughtUp. Next reads one message. A caller without Next repeats these steps in this order:
//
//  1. Read waits for bytes.
//  2. The caller decodes Bytes, and calls Consume for each message.
//  3. Overdue reports whether the message that is still incomplete takes too long.
//
// Overdue is last because Read returns no error for such a message: its rest may have just arrived.
type Reader struct {
	conn net.Conn
	// reading is held during a read. taken is closed when this reader must not read any more.
	reading sync.Mutex
	taken   chan struct{}
	taking  sync.Once

	// buf[begin:end] was not decoded yet. offset is the position of buf[begin] on the connection.
	buf        []byte
	begin, end int
	offset     int64
	maxMessage int

	messageTimeout time.Duration
	// incompleteSince is when Read first waited for the rest of the message at the front. lastLook: one more
	// read was tried after the timeout of that message.
	incompleteSince time.Time
	lastLook        bool

	// deadlines guards the rest of these fields. until is from the last Read, endsBy from EndBy, and
	// deadline is what the connection has. woken: Wake was called, and no read has ended by it.
	deadlines               sync.Mutex
	until, endsBy, deadline time.Time
	woken                   bool

	// waits: everything decoded so far was processed, and a read waits for more.
	waits  atomic.Bool
	onWait func()
}

// New returns a reader of a connection.
func New(conn net.Conn, s Settings) *Reader {
	return &Reader{
		conn: conn, taken: make(chan struct{}), buf: make([]byte, s.Buffer), maxMessage: max(s.Buffer, s.MaxMessage),
		messageTimeout: s.MessageTimeout, deadline: s.Deadline,
	}
}

// Conn returns the connection.
func (r *Reader) Conn() net.Conn { return r.conn }

// Bytes returns the received bytes that were not consumed yet. They are valid until the next Read.
func (r *Reader) Bytes() []byte { return r.buf[r.begin:r.end] }

// Size returns the size of the buffer.
func (r *Reader) Size() int { return len(r.buf) }

// SetMessageTimeout changes how long the rest of a message may take.
func (r *Reader) SetMessageTimeout(d time.Duration) { r.messageTimeout = d }

// Consume removes the first n bytes: they were decoded.
func (r *Reader) Consume(n int) {
	r.begin += n
	r.offset += int64(n)
	r.incompleteSince, r.lastLook = time.Time{}, false
}

// Decoder decodes the message at the front of some bytes, like the functions of package bytefrog. The length n is
// zero while the message is incomplete.
type Decoder func(b []byte) (m bytefrog.Message, n int, err error)

// Next returns the next message, and its bytes until the next read. The errors are those of Read; bytes that
// cannot be decoded, and an end inside a message, are *BadData.
func (r *Reader) Next(decode Decoder, until time.Time) (m bytefrog.Message, raw []byte, err error) {
	for {
		m, n, err := decode(r.Bytes())
		if err != nil {
			return nil, nil, r.BadData(err)
		}
		if n > 0 {
			raw = r.Bytes()[:n]
			r.Consume(n)
			return m, raw, nil
		}
		if err := r.Overdue(); err != nil {
			return nil, nil, err
		}
		n, err = r.Read(time.Now(), until)
		if errors.Is(err, io.EOF) && n == 0 {
			if cut := r.Cut(); cut != nil {
				return nil, nil, cut
			}
		}
		if err != nil && n == 0 {
			return nil, nil, err
		}
	}
}

// NextReadable returns the next message of an agent that is refused anyway: it skips bytes that cannot be decoded.
func (r *Reader) NextReadable(decode Decoder, until time.Time) (bytefrog.Message, error) {
	for {
		m, _, err := r.Next(decode, until)
		var bad *BadData
		if !errors.As(err, &bad) {
			return m, err
		}
		r.Consume(len(r.Bytes()))
	}
}

// LastLook is how long one more read waits after a deadline has passed. A read after its deadline
// returns nothing even if bytes have arrived, and the collector itself may have been slow.
const LastLook = 100 * time.Millisecond

// ErrTaken reports that TakeAway has given the connection to another reader.
var ErrTaken = errors.New("the connection is read by another")

// Read waits for more bytes until the time until, or forever if that is zero. Its error is os.ErrDeadlineExceeded,
// ErrTaken, that of the connection, or *BadData for a message longer than MaxMessage. When the message at the front
// takes too long, Read returns neither bytes nor an error: the caller decodes, and then calls Overdue.
func (r *Reader) Read(now, until time.Time) (n int, err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	if isClosed(r.taken) {
		return 0, ErrTaken
	}
	if err := r.makeRoom(); err != nil {
		return 0, err
	}
	rest := r.restDeadline(now)
	if until.IsZero() || !rest.IsZero() && rest.Before(until) {
		until = rest
	}
	deadline, err := r.setDeadline(until)
	if err != nil {
		return 0, err
	}
	r.waits.Store(true)
	if r.onWait != nil {
		r.onWait()
	}
	n, err = r.conn.Read(r.buf[r.end:])
	r.waits.Store(false)
	r.end += n
	switch {
	case err == nil:
	case isClosed(r.taken):
		err = ErrTaken
	case errors.Is(err, os.ErrDeadlineExceeded) && r.wasWoken():
		r.lastLook = false // it was cut short
	case !rest.IsZero() && deadline.Equal(rest) && errors.Is(err, os.ErrDeadlineExceeded):
		err = nil
	}
	return n, err
}

// restDeadline returns until when the rest of the message at the front may arrive. Zero: forever, or there is none.
// The deadline is extended once by LastLook.
func (r *Reader) restDeadline(now time.Time) time.Time {
	if r.begin == r.end || r.messageTimeout <= 0 {
		return time.Time{}
	}
	if r.incompleteSince.IsZero() {
		r.incompleteSince = now
	}
	rest := r.incompleteSince.Add(r.messageTimeout)
	if rest.After(now) {
		return rest
	}
	r.lastLook = true
	return now.Add(LastLook)
}

// setDeadline sets the deadline of the next read, which EndBy may make earlier. It returns the earlier of both.
func (r *Reader) setDeadline(until time.Time) (time.Time, error) {
	r.deadlines.Lock()
	defer r.deadlines.Unlock()
	r.until = until
	err := r.applyDeadline()
	return r.deadline, err
}

// EndBy ends all reads at a time, also reads with a later time. Zero removes that time. Any goroutine may call it.
func (r *Reader) EndBy(t time.Time) {
	r.deadlines.Lock()
	defer r.deadlines.Unlock()
	r.endsBy = t
	_ = r.applyDeadline() // an error shows at the next Read
}

// Wake ends a read that waits, or else the next read, with os.ErrDeadlineExceeded. Any goroutine may call it.
func (r *Reader) Wake() {
	r.deadlines.Lock()
	defer r.deadlines.Unlock()
	if isClosed(r.taken) {
		return // the deadline is the other reader's
	}
	r.woken = true
	_ = r.applyDeadline() // an error shows at the next Read
}

// wasWoken reports whether Wake was called since the last call.
func (r *Reader) wasWoken() bool {
	r.deadlines.Lock()
	defer r.deadlines.Unlock()
	woken := r.woken
	r.woken = false
	return woken
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// applyDeadline sets the connection's deadline to the earlier of until and endsBy, or to past after Wake. The caller holds
// the lock.
func (r *Reader) applyDeadline() error {
	deadline := r.until
	if deadline.IsZero() || !r.endsBy.IsZero() && r.endsBy.Before(deadline) {
		deadline = r.endsBy
	}
	if r.woken {
		deadline = past
	}
	if deadline.Equal(r.deadline) {
		return nil
	}
	if err := r.conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	r.deadline = deadline
	return nil
}

// TakeAway returns the connection, which this reader does not use any more. It ends a read, which returns ErrTaken, as
// do all later reads.
func (r *Reader) TakeAway() net.Conn {
	r.taking.Do(func() { close(r.taken) })
	r.EndBy(time.Now())
	r.reading.Lock()
	defer r.reading.Unlock()
	return r.conn
}

// Taken returns a channel that is closed when TakeAway is called.
func (r *Reader) Taken() <-chan struct{} { return r.taken }

// Overdue returns an error if the message at the front takes longer than MessageTimeout. The caller has tried to decode it
// after the last Read.
func (r *Reader) Overdue() error {
	if r.begin == r.end || !r.lastLook {
		return nil
	}
	return r.incomplete(fmt.Sprintf(" within %v", r.messageTimeout), "nothing more")
}

// Cut returns an error if the connection ended inside a message.
func (r *Reader) Cut() error {
	if r.begin == r.end {
		return nil
	}
	return r.incomplete("", "the end of the connection")
}

// incomplete returns the error of a message whose rest did not arrive.
func (r *Reader) incomplete(within, got string) error {
	front := bytefrog.MessageType(r.buf[r.begin])
	return r.BadData(&bytefrog.ProtocolError{
		Offset: r.end - r.begin, Expected: "the rest of " + front.String() + within, Got: got,
	})
}

// makeRoom moves the bytes to the front, or grows a full buffer. The error says that the message at the front is
// longer than allowed.
func (r *Reader) makeRoom() error {
	if r.begin == r.end {
		r.begin, r.end = 0, 0
	}
	if r.begin > 0 && len(r.buf)-r.end < len(r.buf)/2 {
		r.end = copy(r.buf, r.buf[r.begin:r.end])
		r.begin = 0
	}
	if r.end < len(r.buf) {
		return nil
	}
	if len(r.buf) >= r.maxMessage {
		return r.BadData(&bytefrog.ProtocolError{Expected: fmt.Sprintf("a message of at most %d bytes", r.maxMessage), Got: "more"})
	}
	r.Resize(min(2*len(r.buf), r.maxMessage))
	return nil
}

// Resize changes the size of the buffer. It stays large enough for the bytes that were not consumed.
func (r *Reader) Resize(size int) {
	bigger := make([]byte, max(size, r.end-r.begin))
	r.end = copy(bigger, r.Bytes())
	r.buf, r.begin = bigger, 0
}

// Free releases the buffer of a connection that is not read any more.
func (r *Reader) Free() { r.buf, r.begin, r.end = nil, 0, 0 }

// OnWait makes f run whenever CaughtUp may have become true. f must not read the connection.
func (r *Reader) OnWait(f func()) {
	r.onWait = f
	socket.OnWait(r.conn, f)
}

// CaughtUp reports whether all received bytes were read and processed, and a read waits for more.
func (r *Reader) CaughtUp() bool { return r.waits.Load() && socket.Drained(r.conn) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
