// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
)

// rep is a replier of 3.1 up to the traffic.
var rep = null31 + ready("REP")

func TestEachRequestReturnsItsReply(t *testing.T) {
	conn := newDialog(null31, ready("REP"), "", "\x01\x00\x00\x02ok", pingNoLimit+"\x01\x00\x01\x01a\x00\x00")
	r, err := zmtp.Request(t.Context(), conn, zmtp.Options{})
	require.NoError(t, err)
	reply, err := r.Ask(t.Context(), []byte("one"))
	require.NoError(t, err)
	require.Equal(t, zmtp.Message{[]byte("ok")}, reply)
	reply, err = r.Ask(t.Context(), []byte("t"), []byte("wo"))
	require.NoError(t, err)
	require.Equal(t, zmtp.Message{[]byte("a"), {}}, reply)
	require.Equal(t, null31+ready("REQ")+"\x01\x00\x00\x03one"+"\x01\x00\x01\x01t\x00\x02wo"+"\x04\x05\x04PONG", conn.told.String())
	require.NoError(t, r.Close())
}

func TestWrongRepliesAreErrors(t *testing.T) {
	for _, tt := range []struct{ name, traffic, err string }{
		{"a reply without the empty part", "\x00\x02ok", `byte 91: expected a reply of an empty part and at least one other, got 1 parts, the first "ok"`},
		{"only the empty part", "\x00\x00", `byte 91: expected a reply of an empty part and at least one other, got 1 parts, the first ""`},
		{"something before the empty part", "\x01\x01a\x01\x00\x00\x02ok", `byte 91: expected a reply of an empty part and at least one other, got 3 parts, the first "a"`},
		{"no reply", "", "byte 91: expected a frame, or an answer to PING, got: the connection was closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := zmtp.Request(t.Context(), newDialog(null31, ready("REP"), "", tt.traffic), zmtp.Options{})
			require.NoError(t, err)
			_, err = r.Ask(t.Context(), []byte("handshake"))
			require.ErrorContains(t, err, tt.err)
			_, err = r.Ask(t.Context(), []byte("handshake"))
			require.ErrorContains(t, err, "unusable after an earlier error")
		})
	}
}

func TestAReplyWithoutARequestDoesNotAnswerTheNext(t *testing.T) {
	r, err := zmtp.Request(t.Context(), newDialog(null31, ready("REP"), "", "\x01\x00\x00\x02ok\x01\x00\x00\x03not"), zmtp.Options{})
	require.NoError(t, err)
	_, err = r.Ask(t.Context(), []byte("a"))
	require.NoError(t, err)
	_, err = r.Ask(t.Context(), []byte("b"))
	require.ErrorContains(t, err, `expected nothing before the next request, got "\x01\x00\x00\x03not"`)
}

func TestARequestHasAPart(t *testing.T) {
	conn := newScript(rep, 0)
	r, err := zmtp.Request(t.Context(), conn, zmtp.Options{})
	require.NoError(t, err)
	_, err = r.Ask(t.Context())
	require.ErrorContains(t, err, "expected a request of at least one part, got none")
	require.True(t, bytes.HasSuffix(conn.told.Bytes(), []byte(ready("REQ"))), "nothing was sent")
}

func TestARequesterWantsAReplier(t *testing.T) {
	_, err := zmtp.Request(t.Context(), newScript(pub, 0), zmtp.Options{})
	require.ErrorContains(t, err, `byte 72: expected a socket of type REP or ROUTER, got "PUB"`)
	_, err = zmtp.Request(t.Context(), newScript(null31+ready("ROUTER"), 0), zmtp.Options{})
	require.NoError(t, err)
}
