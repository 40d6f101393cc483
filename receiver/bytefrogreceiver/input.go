// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// input is what has come on a connection and was not decoded yet. It is for one
// goroutine, from which the connection can be taken away.
type input struct {
	conn net.Conn
	// reading is held while the connection is read; taken is closed when it may not be
	// read any more.
	reading sync.Mutex
	taken   chan struct{}
	taking  sync.Once
	// buf[begin:end] is what was not decoded; begin is offset bytes from the first
	// byte of the connection.
	buf        []byte
	begin, end int
	offset     int64
	// largest is how long buf may become: as long as the longest message.
	largest int
	// timeout is how long a message can take. waiting is since when the one at the
	// front is waited for; looked says that the connection was read once more when
	// that was too long.
	timeout time.Duration
	waiting time.Time
	looked  bool
	// deadline is the connection's for reading.
	deadline time.Time
	// reader is a readerState. Others look at it.
	reader atomic.Uint32
	// onWait, if set, is called when caughtUp can have become true.
	onWait func()
}

// readerState says what the reader of a connection does.
type readerState = uint32

const (
	// readerNone: nothing was read yet.
	readerNone readerState = iota
	// readerBusy: it handles what came.
	readerBusy
	// readerWaiting: it has handled all that came, and waits for more.
	readerWaiting
)

const inputBytes = 64 << 10

func newInput(conn net.Conn, size, maxString int, timeout time.Duration) *input {
	return &input{
		conn:    conn,
		buf:     make([]byte, size),
		largest: max(size, bytefrog.MaxMessageSize(maxString)),
		timeout: timeout,
		taken:   make(chan struct{}),
	}
}

// bytes are those that were not taken yet.
func (in *input) bytes() []byte { return in.buf[in.begin:in.end] }

// take says that the first n bytes were decoded.
func (in *input) take(n int) {
	in.begin += n
	in.offset += int64(n)
	in.waiting, in.looked = time.Time{}, false
}

// lastLook is how long a connection is read once more when something has not come
// in time: a read whose deadline has passed brings nothing, though it may be there,
// and it is our own time that may be short.
const lastLook = 100 * time.Millisecond

// errTaken: the connection was taken away from its reader.
var errTaken = errors.New("the connection is read by another")

// takeAway gives the connection, which this input does not read any more when it
// returns: it ends a read that goes on, with errTaken, as are all that follow.
func (in *input) takeAway() net.Conn {
	in.taking.Do(func() { close(in.taken) })
	expire(in.conn)
	in.reading.Lock()
	defer in.reading.Unlock()
	return in.conn
}

// expire ends a read.
func expire(conn net.Conn) { _ = conn.SetReadDeadline(time.Now()) }

// read waits for more bytes, at most until the time until, if it is not zero. The
// error is os.ErrDeadlineExceeded then, errTaken, or the connection's. When what
// came was decoded, overdue says whether the message at the front takes too long.
func (in *input) read(now, until time.Time) (int, error) {
	in.reading.Lock()
	defer in.reading.Unlock()
	in.makeRoom()
	if in.begin < in.end {
		if in.waiting.IsZero() {
			in.waiting = now
		}
		over := in.waiting.Add(in.timeout)
		if !over.After(now) {
			over, in.looked = now.Add(lastLook), true
		}
		if until.IsZero() || over.Before(until) {
			until = over
		}
	}
	if !until.Equal(in.deadline) {
		if err := in.conn.SetReadDeadline(until); err != nil {
			return 0, err
		}
		in.deadline = until
	}
	// After the deadline was set, or that of takeAway would be lost.
	if isClosed(in.taken) {
		return 0, errTaken
	}
	in.reader.Store(readerWaiting)
	if in.onWait != nil {
		in.onWait()
	}
	n, err := in.conn.Read(in.buf[in.end:])
	in.reader.Store(readerBusy)
	in.end += n
	if err != nil && isClosed(in.taken) {
		err = errTaken
	}
	return n, err
}

// overdue gives an error when the message at the front takes too long.
func (in *input) overdue() error {
	if in.begin == in.end || !in.looked {
		return nil
	}
	front := bytefrog.MessageType(in.buf[in.begin])
	return in.bad(&bytefrog.ProtocolError{
		Offset:   in.end - in.begin,
		Expected: fmt.Sprintf("the rest of %s within %v", front, in.timeout),
		Got:      "nothing more",
	})
}

// makeRoom moves what was not taken to the front, or makes the buffer longer, when
// it is full.
func (in *input) makeRoom() {
	if in.begin == in.end {
		in.begin, in.end = 0, 0
	}
	if in.begin > 0 && len(in.buf)-in.end < len(in.buf)/2 {
		in.end = copy(in.buf, in.buf[in.begin:in.end])
		in.begin = 0
	}
	if in.end == len(in.buf) && len(in.buf) < in.largest {
		bigger := make([]byte, min(2*len(in.buf), in.largest))
		copy(bigger, in.buf[:in.end])
		in.buf = bigger
	}
}

// cut gives an error when the connection ended inside a message.
func (in *input) cut() error {
	if in.begin == in.end {
		return nil
	}
	return in.bad(&bytefrog.ProtocolError{
		Offset:   in.end - in.begin,
		Expected: "the rest of " + bytefrog.MessageType(in.buf[in.begin]).String(),
		Got:      "the end of the connection",
	})
}

// bad is what err, of a decoder that was given bytes, says of the connection.
func (in *input) bad(err error) *badData {
	bad := &badData{peer: in.conn.RemoteAddr().String(), offset: in.offset, expected: "a message", got: err.Error()}
	var protocol *bytefrog.ProtocolError
	if errors.As(err, &protocol) {
		bad.offset += int64(protocol.Offset)
		bad.expected, bad.got = protocol.Expected, protocol.Got
	}
	return bad
}

// badData says where a peer sent what the protocol does not allow.
type badData struct {
	peer string
	// offset is in bytes from the first of the connection.
	offset        int64
	expected, got string
}

func (e *badData) Error() string {
	return fmt.Sprintf("%s, byte %d: expected %s, got %s", e.peer, e.offset, e.expected, e.got)
}

// callOnWait has f called when caughtUp can have become true. f must not read the connection.
func (in *input) callOnWait(f func()) {
	in.onWait = f
	socket.OnWait(in.conn, f)
}

// caughtUp reports whether all that has arrived was read and handled.
func (in *input) caughtUp() bool {
	state := in.reader.Load()
	return state == readerNone || state == readerWaiting && socket.Drained(in.conn)
}

// timedOut reports whether a read ended because its time was over.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// resize makes the buffer of a connection that has more to say than its first
// message longer.
func (in *input) resize(size int) {
	bigger := make([]byte, max(size, in.end-in.begin))
	in.end = copy(bigger, in.bytes())
	in.buf, in.begin = bigger, 0
}
