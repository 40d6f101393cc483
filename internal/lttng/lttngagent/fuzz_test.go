// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// fuzzLimits are low, so that random bytes often exceed them.
var fuzzLimits = lttngagent.Limits{Names: 5, NameBytes: 1 << 10}

// checkError checks that err describes an error in the n received bytes, or their end.
func checkError(t *testing.T, err error, n int) {
	t.Helper()
	var wrong *lttngagent.ProtocolError
	switch {
	case errors.As(err, &wrong):
		if wrong.Offset < 0 || wrong.Offset > n {
			t.Fatalf("expected an offset within %d bytes, got %v", n, err)
		}
	case n == 0 && errors.Is(err, io.EOF), n > 0 && errors.Is(err, io.ErrUnexpectedEOF):
	default:
		t.Fatalf("expected an error of the protocol or the end of %d bytes, got %v", n, err)
	}
}

func FuzzRegistration(f *testing.F) {
	for _, c := range captures(f) {
		f.Add(c.toDaemon[:lttngagent.RegistrationSize])
	}
	for _, c := range wrongRegistrations {
		f.Add(unhex(f, c.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := lttngagent.ParseRegistration(b)
		if err != nil {
			checkError(t, err, len(b))
			return
		}
		if !r.Domain.Valid() || !bytes.Equal(r.AppendTo(nil), b) {
			t.Fatalf("expected a valid registration of % x, got %v", b, r)
		}
	})
}

func FuzzListReply(f *testing.F) {
	for _, c := range captures(f) {
		_, all := c.exchanges(f)
		for _, e := range all {
			if e.answered && e.request.Type == lttngagent.CommandList {
				f.Add(e.reply, false)
				f.Add(lttngagent.ListReply{Code: e.code, Loggers: e.loggers}.AppendTo(nil, lttngagent.RFC), true)
			}
		}
	}
	for _, c := range listReplies {
		f.Add(unhex(f, c.bytes), c.agent == rfc)
	}
	for _, c := range wrongLists {
		f.Add(unhex(f, c.bytes), c.agent == rfc)
	}
	f.Fuzz(func(t *testing.T, b []byte, ofRFC bool) {
		agent := v2
		if ofRFC {
			agent = rfc
		}
		unread := bytes.NewReader(b)
		from := bufio.NewReader(unread)
		reply, err := agent.ReadList(from, fuzzLimits)
		if err != nil {
			checkError(t, err, len(b))
			return
		}
		size := 0
		for _, name := range reply.Loggers {
			if size += len(name) + 1; !utf8.ValidString(name) {
				t.Fatalf("expected names in UTF-8, got %q", name)
			}
		}
		if len(reply.Loggers) > fuzzLimits.Names || size > fuzzLimits.NameBytes {
			t.Fatalf("expected names within %+v, got %d in %d bytes", fuzzLimits, len(reply.Loggers), size)
		}
		taken := b[:len(b)-unread.Len()-from.Buffered()]
		if again := reply.AppendTo(nil, agent.Dialect); !bytes.Equal(again, taken) {
			t.Fatalf("decoded and encoded: expected % x, got % x", taken, again)
		}
	})
}

func FuzzRequest(f *testing.F) {
	for _, c := range captures(f) {
		for _, e := range c.requests(f) {
			f.Add(e.bytes, false)
			if b, err := rfc.AppendCommand(nil, e.command); err == nil {
				f.Add(b, true)
			}
		}
	}
	for _, c := range wrongRequests {
		f.Add(unhex(f, c.bytes), c.dialect == lttngagent.RFC)
	}
	f.Fuzz(func(t *testing.T, b []byte, ofRFC bool) {
		agent := v2
		if ofRFC {
			agent = rfc
		}
		q, err := agent.Dialect.ReadRequest(bufio.NewReader(iotest.HalfReader(bytes.NewReader(b))))
		if err != nil {
			checkError(t, err, len(b))
			return
		}
		command, err := q.Command(agent.Dialect)
		if err != nil {
			checkError(t, err, len(b))
			return
		}
		sent, err := agent.AppendCommand(nil, command)
		if err != nil {
			t.Fatalf("expected %v to be sent, got %v", command, err)
		}
		q, err = readRequest(agent.Dialect, sent)
		if err != nil {
			t.Fatalf("expected %v to be read, got %v", command, err)
		}
		if again, err := q.Command(agent.Dialect); err != nil || again != command {
			t.Fatalf("encoded and decoded: expected %v, got %v, %v", command, again, err)
		}
	})
}
