// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// inlet reads messages one by one from a connection that has few of them: those of a handshake, and
// control connections. It is for one goroutine, except endBy.
type inlet struct {
	conn net.Conn
	buf  []byte
	// buf[begin:end] was not decoded yet; offset is that of buf[begin] from the first byte of the
	// connection.
	begin, end int
	offset     int64
	// most is the longest message that is read, in bytes. patience, where it isn't zero, is how long a
	// message may take to arrive whole after its first byte.
	most     int
	patience time.Duration

	ending sync.Mutex
	// until is the time of the next message, and endsBy that of all; zero: never.
	until, endsBy time.Time
}

// controlBytes is how much of a control connection is read at once.
const controlBytes = 4 * kib

func newInlet(conn net.Conn, size, most int) *inlet {
	return &inlet{conn: conn, buf: make([]byte, size), most: most}
}

// decoder decodes the message at the front of some bytes, as those of package bytefrog.
type decoder func(b []byte) (m bytefrog.Message, n int, err error)

// next waits for a message, until the time until if it is not zero. raw is the message's bytes, for
// use before the next call.
func (in *inlet) next(decode decoder, until time.Time) (m bytefrog.Message, raw []byte, err error) {
	if err := in.awaitUntil(until); err != nil {
		return nil, nil, err
	}
	hasBegun := false
	for {
		m, n, err := decode(in.buf[in.begin:in.end])
		if err != nil {
			return nil, nil, in.bad(err)
		}
		if n > 0 {
			raw = in.buf[in.begin : in.begin+n]
			in.begin += n
			in.offset += int64(n)
			return m, raw, nil
		}
		if in.begin < in.end && !hasBegun && in.patience > 0 {
			hasBegun = true
			if err := in.awaitUntil(earliest(until, time.Now().Add(in.patience))); err != nil {
				return nil, nil, err
			}
		}
		err = in.read()
		if hasBegun && errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, nil, in.bad(errors.New("expected the rest of a message, which did not come in time"))
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// awaitUntil sets the time of the next read.
func (in *inlet) awaitUntil(until time.Time) error {
	in.ending.Lock()
	defer in.ending.Unlock()
	in.until = until
	return in.conn.SetReadDeadline(earliest(in.until, in.endsBy))
}

// endBy ends all reads at a time at the latest, whatever next is called with; zero: no longer. It is
// for any goroutine.
func (in *inlet) endBy(t time.Time) {
	in.ending.Lock()
	defer in.ending.Unlock()
	in.endsBy = t
	_ = in.conn.SetReadDeadline(earliest(in.until, in.endsBy))
}

// earliest is the earlier of two times, of which zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// read reads more of the message at the front.
func (in *inlet) read() error {
	if in.begin > 0 {
		in.end = copy(in.buf, in.buf[in.begin:in.end])
		in.begin = 0
	}
	if in.end == len(in.buf) {
		if len(in.buf) >= in.most {
			return in.bad(fmt.Errorf("expected a message of at most %d bytes, got more", in.most))
		}
		bigger := make([]byte, min(2*len(in.buf), in.most))
		copy(bigger, in.buf[:in.end])
		in.buf = bigger
	}
	n, err := in.conn.Read(in.buf[in.end:])
	in.end += n
	if n > 0 {
		return nil
	}
	if errors.Is(err, io.EOF) && in.end > 0 {
		return in.bad(errors.New("expected the rest of a message, got the end of the connection"))
	}
	return err
}

// bad returns the error of a bad message, with its position.
func (in *inlet) bad(err error) error { return badAt(in.conn, in.offset, err) }

// badAt returns the error of bad data, with its position on a connection: offset bytes from the first,
// and the offset in err.
func badAt(conn net.Conn, offset int64, err error) error {
	var protocol *bytefrog.ProtocolError
	if errors.As(err, &protocol) {
		err = fmt.Errorf("expected %s, got %s", protocol.Expected, protocol.Got)
		offset += int64(protocol.Offset)
	}
	return &badData{fmt.Errorf("%s, byte %d: %w", conn.RemoteAddr(), offset, err)}
}

// badData: a peer has sent what the protocol does not allow.
type badData struct{ error }

func (b *badData) Unwrap() error { return b.error }

// fromAgent decodes messages of an agent's control connection.
func fromAgent(b []byte) (bytefrog.Message, int, error) {
	return bytefrog.DecodeControl(b, bytefrog.MaxString)
}

// maxConfiguration is the longest configuration that is accepted from a collector, in bytes.
const maxConfiguration = mib

// fromCollector decodes messages to agents of a version.
func fromCollector(version uint8) decoder {
	return func(b []byte) (bytefrog.Message, int, error) {
		return bytefrog.DecodeCommand(b, version, maxConfiguration)
	}
}
