// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
)

// pieces are the sizes in which the bytes of a peer arrive: whole, and one by one.
var pieces = []int{0, 1}

func TestASubscriberSendsTheBytesOfTheRFCs(t *testing.T) {
	plain := zmtp.Plain{Username: "name", Password: "secre"}
	tests := []struct {
		name     string
		options  zmtp.Options
		prefixes [][]byte
		peer     string
		says     string
	}{
		{
			"3.1 subscribes by commands", zmtp.Options{}, [][]byte{{}, []byte("ab")}, pub,
			null31 + ready("SUB") + "\x04\x0a\x09SUBSCRIBE" + "\x04\x0c\x09SUBSCRIBEab",
		},
		{
			"a peer of 3.0 gets messages", zmtp.Options{}, [][]byte{{}, []byte("ab")}, null30 + ready("PUB"),
			null31 + ready("SUB") + "\x00\x01\x01" + "\x00\x03\x01ab",
		},
		{
			"3.0 subscribes by messages, with a peer of any version", zmtp.Options{Version30: true}, [][]byte{{}}, pub,
			null30 + ready("SUB") + "\x00\x01\x01",
		},
		{
			"a later version is spoken to as 3.1", zmtp.Options{}, [][]byte{{}}, greetingOf("\x04", "\x00", "NULL", "\x00") + ready("PUB"),
			null31 + ready("SUB") + "\x04\x0a\x09SUBSCRIBE",
		},
		{
			"PLAIN sends HELLO and INITIATE", zmtp.Options{Security: plain}, nil, plain31 + welcome + ready("PUB"),
			plain31 + hello + initiate,
		},
		{
			"metadata may have any case, any order and more than is known", zmtp.Options{}, nil,
			null31 + "\x04\x2d\x05READY\x08Identity\x00\x00\x00\x00\x0bsocket-TYPE\x00\x00\x00\x04XPUB\x01X\x00\x00\x00\x00",
			null31 + ready("SUB"),
		},
		{
			"a command may be long though it is short", zmtp.Options{}, nil,
			null31 + "\x06\x00\x00\x00\x00\x00\x00\x00\x19\x05READY" + property("PUB"),
			null31 + ready("SUB"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, piece := range pieces {
				conn := newScript(tt.peer, piece)
				_, err := zmtp.Subscribe(t.Context(), conn, tt.options, tt.prefixes...)
				require.NoError(t, err)
				require.Equal(t, tt.says, conn.told.String())
			}
		})
	}
}

// wrongPeers are peers that a subscriber refuses, and its error.
var wrongPeers = []struct {
	name    string
	options zmtp.Options
	peer    string
	err     string
}{
	{"a silent peer that closes", zmtp.Options{}, "", "greeting: byte 0: expected a ZMTP 3 greeting, got: the connection was closed"},
	{"a web server", zmtp.Options{}, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n", `greeting: byte 0: expected a ZMTP 3 greeting, got HTTP: "H`},
	{"a web client", zmtp.Options{}, "GET /metrics HTTP/1.1\r\n", `greeting: byte 0: expected a ZMTP 3 greeting, got HTTP: "G`},
	{"TLS", zmtp.Options{}, "\x15\x03\x01\x00\x02\x02\x46", `greeting: byte 0: expected a ZMTP 3 greeting, got TLS: "\x15\x03`},
	{"another protocol", zmtp.Options{}, "SSH-2.0-OpenSSH", `greeting: byte 0: expected a ZMTP 3 greeting, got "S`},
	{"ZMTP 1, anonymous", zmtp.Options{}, "\x01\x00", `greeting: byte 0: expected a ZMTP 3 greeting, got a frame of ZMTP 1.0, or something else: "\x01\x00"`},
	{"ZMTP 1 as later libraries send it", zmtp.Options{}, "\xff" + zeros(7) + "\x01\x7f\x00", "greeting: byte 10: expected a ZMTP 3 greeting, got one of ZMTP 1.0"},
	{"ZMTP 2", zmtp.Options{}, "\xff" + zeros(7) + "\x01\x7f\x01\x01\x00\x00", "greeting: byte 10: expected a ZMTP 3 greeting, got one of ZMTP 2.0"},
	{"a signature that is none", zmtp.Options{}, "\xff" + zeros(8) + "\x7e", "greeting: byte 9: expected 0x7f, the end of the signature, got 0x7e"},
	{"half a greeting", zmtp.Options{}, null31[:40], "greeting: byte 40: expected a ZMTP 3 greeting, got: the connection was closed"},
	{"another mechanism", zmtp.Options{}, plain31, `greeting: byte 12: expected the mechanism NULL, got "PLAIN"`},
	{"no password where one is asked for", zmtp.Options{Security: zmtp.Plain{}}, null31, `greeting: byte 12: expected the mechanism PLAIN, got "NULL"`},
	{"a mechanism with more than a name", zmtp.Options{}, greeting("\x01", "NULL\x00x"), `greeting: byte 12: expected the mechanism NULL, got "NULL\x00x"`},

	{"the ports are swapped", zmtp.Options{}, null31 + ready("REP"), `handshake: byte 72: expected a socket of type PUB or XPUB, got "REP"`},
	{"no socket type", zmtp.Options{}, null31 + "\x04\x06\x05READY", `handshake: byte 72: expected metadata with the property Socket-Type, got ""`},
	{"closed after the greeting", zmtp.Options{}, null31, "handshake: byte 64: expected the command READY, got: the connection was closed"},
	{"half a handshake", zmtp.Options{}, null31 + ready("PUB")[:9], "handshake: byte 73: expected the command READY, got: the connection was closed"},
	{"a message in place of the handshake", zmtp.Options{}, null31 + "\x00\x01a", "handshake: byte 64: expected the command READY, got a frame of a message"},
	{"reserved flags", zmtp.Options{}, null31 + "\x0c\x06\x05READY", "handshake: byte 64: expected flags of a frame with reserved bits 0, got 0x0c"},
	{"a command with more to follow", zmtp.Options{}, null31 + "\x05\x06\x05READY", "handshake: byte 64: expected a command of one frame, got flags 0x05, of a command with more to follow"},
	{"a huge handshake", zmtp.Options{}, null31 + "\x06\x00\x00\x00\x00\x00\x01\x00\x01", "handshake: byte 65: expected a command of at most 65536 bytes, got a size of 65537"},
	{"an endless handshake", zmtp.Options{}, null31 + "\x06\x80\x00\x00\x00\x00\x00\x00\x00", "handshake: byte 65: expected a size of a frame below 2^63, got 9223372036854775808"},
	{"another command", zmtp.Options{}, null31 + "\x04\x05\x04PING", `handshake: byte 67: expected the command READY, got "PING"`},
	{"a command without a name", zmtp.Options{}, null31 + "\x04\x00", `handshake: byte 66: expected the name of a command, got 0 bytes: ""`},
	{"a command with a name of no bytes", zmtp.Options{}, null31 + "\x04\x01\x00", `handshake: byte 66: expected the name of a command, got 1 bytes: "\x00"`},
	{"a command that is shorter than its name", zmtp.Options{}, null31 + "\x04\x03\x05RE", `handshake: byte 66: expected the name of a command, got 3 bytes: "\x05RE"`},
	{"a property without a name", zmtp.Options{}, null31 + "\x04\x0b\x05READY\x00\x00\x00\x00\x00", "handshake: byte 72: expected a property: a name of 1 to 255 bytes, and a value, got a length of 0 before 4 bytes"},
	{"a property that ends in its name", zmtp.Options{}, null31 + "\x04\x08\x05READY\x0bS", "handshake: byte 72: expected a property: a name of 1 to 255 bytes, and a value, got a length of 11 before 1 bytes"},
	{"a property that ends in its value", zmtp.Options{}, null31 + "\x04\x0d\x05READY\x01S\xff\xff\xff\xffP", "handshake: byte 72: expected a property: a name of 1 to 255 bytes, and a value, got a value of 4294967295 bytes before the last 1"},
	{"the peer refuses", zmtp.Options{}, null31 + "\x04\x0a\x05ERROR\x03400", `handshake: refused by the peer, with the reason "400"`},
	{"libzmq refuses", zmtp.Options{}, null31 + "\x04\x09^RROR\x03400", `handshake: refused by the peer, with the reason "400"`},
	{"the peer refuses, for a reason that is cut off", zmtp.Options{}, null31 + "\x04\x09\x05ERROR\xff40", `handshake: refused by the peer, with the reason "40"`},
	{"the peer refuses without a reason", zmtp.Options{}, null31 + "\x04\x06\x05ERROR", `handshake: refused by the peer, with the reason ""`},
	{"the password is wrong", zmtp.Options{Security: zmtp.Plain{}}, plain31 + "\x04\x0a\x05ERROR\x03400", `handshake: refused by the peer, with the reason "400"`},
	{"welcome with something", zmtp.Options{Security: zmtp.Plain{}}, plain31 + "\x04\x09\x07WELCOME!", `handshake: byte 74: expected a WELCOME without data, got "!"`},
	{"ready before welcome", zmtp.Options{Security: zmtp.Plain{}}, plain31 + ready("PUB"), `handshake: byte 67: expected the command WELCOME, got "READY"`},
	{"a name that is too long to send", zmtp.Options{Security: zmtp.Plain{Username: zeros(256)}}, plain31, "handshake: expected a name and a password of at most 255 bytes, got 256 and 0"},
}

const greetingFailure = "byte 0: expected a ZMTP 3 greeting, got"

func TestTheErrorNamesAWrongPeer(t *testing.T) {
	for _, tt := range wrongPeers {
		t.Run(tt.name, func(t *testing.T) {
			for _, piece := range pieces {
				_, err := zmtp.Subscribe(t.Context(), newScript(tt.peer, piece), tt.options, nil)
				want := "ZMTP peer peer:1, " + tt.err
				if speaker := strings.Index(want, greetingFailure); speaker > 0 && piece == 1 {
					want = want[:speaker] // the first byte is wrong, but too little to name the peer
				}
				require.ErrorContains(t, err, want)
				var e *zmtp.Error
				require.ErrorAs(t, err, &e)
			}
		})
	}
}

func TestAServerWithAnotherMechanismDoesNotReceiveOurs(t *testing.T) {
	for _, piece := range pieces {
		conn := newScript(plain31, piece)
		_, err := zmtp.Subscribe(t.Context(), conn, zmtp.Options{}, nil)
		require.ErrorContains(t, err, `expected the mechanism NULL, got "PLAIN"`)
		require.Equal(t, null31[:12], conn.told.String(), "the signature and the version")
	}
}
