// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
)

// script is a connection whose other side sends fixed bytes and ignores all others.
type script struct {
	says  *bytes.Reader
	piece int   // bytes of a read; 0: all
	then  error // after that
	turns []string
	// deadlines are those of all reads, the zero time for those without.
	deadlines []time.Time
	told      bytes.Buffer
}

func newScript(says string, piece int) *script {
	return &script{says: bytes.NewReader([]byte(says)), piece: piece, then: io.EOF}
}

func (s *script) Read(b []byte) (int, error) {
	if s.says.Len() == 0 {
		return 0, s.then
	}
	if s.piece > 0 {
		b = b[:min(len(b), s.piece)]
	}
	return s.says.Read(b)
}

// newDialog returns a script that sends the next text after each write.
func newDialog(says ...string) *script {
	s := newScript("", 0)
	s.turns = says
	return s
}

func (s *script) Write(b []byte) (int, error) {
	if len(s.turns) > 0 {
		rest, _ := io.ReadAll(s.says)
		s.says.Reset(append(rest, s.turns[0]...))
		s.turns = s.turns[1:]
	}
	return s.told.Write(b)
}

func (s *script) Close() error                { return nil }
func (s *script) LocalAddr() net.Addr         { return peerAddr{} }
func (s *script) RemoteAddr() net.Addr        { return peerAddr{} }
func (s *script) SetDeadline(time.Time) error { return nil }
func (s *script) SetReadDeadline(d time.Time) error {
	s.deadlines = append(s.deadlines, d)
	return nil
}
func (s *script) SetWriteDeadline(time.Time) error { return nil }

type peerAddr struct{}

func (peerAddr) Network() string { return "tcp" }
func (peerAddr) String() string  { return "peer:1" }

// The bytes of RFC 23, 24 and 37, as they stand there.
var (
	zeros      = func(n int) string { return strings.Repeat("\x00", n) }
	greeting   = func(minor, mechanism string) string { return greetingOf("\x03", minor, mechanism, "\x00") }
	greetingOf = func(major, minor, mechanism, server string) string {
		return "\xff" + zeros(8) + "\x7f" + major + minor + mechanism + zeros(20-len(mechanism)) + server + zeros(31)
	}
	null31  = greeting("\x01", "NULL")
	null30  = greeting("\x00", "NULL")
	plain31 = greeting("\x01", "PLAIN")

	property = func(socket string) string {
		return "\x0bSocket-Type\x00\x00\x00" + string(rune(len(socket))) + socket
	}
	ready = func(socket string) string {
		metadata := property(socket)
		return "\x04" + string(rune(6+len(metadata))) + "\x05READY" + metadata
	}
	hello       = "\x04\x11\x05HELLO\x04name\x05secre"
	welcome     = "\x04\x08\x07WELCOME"
	initiate    = "\x04\x1c\x08INITIATE" + property("SUB")
	pingNoLimit = "\x04\x07\x04PING\x00\x00"
)

// pub is a publisher of 3.1 up to the traffic.
var pub = null31 + ready("PUB")

// received returns the messages of a subscriber of a script, and its last error.
func received(t testing.TB, conn net.Conn, options zmtp.Options, prefixes ...[]byte) (got []string, err error) {
	t.Helper()
	s, err := zmtp.Subscribe(t.Context(), conn, options, prefixes...)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	err = s.Receive(t.Context(), func(m zmtp.Message) error {
		got = append(got, string(bytes.Join(m, []byte("|"))))
		return nil
	})
	return got, err
}

// errEnough ends Receive.
var errEnough = errors.New("enough")

// next is the next message, copied.
func next(t testing.TB, s *zmtp.Subscriber) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []byte
	err := s.Receive(ctx, func(m zmtp.Message) error {
		got = bytes.Join(m, nil)
		return errEnough
	})
	if err != errEnough {
		t.Fatalf("expected a message, got %v", err)
	}
	return got
}
