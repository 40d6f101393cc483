// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// decoder is the signature of the four functions for messages that are not call events. The bound limits strings or the
// configuration.
type decoder func(b []byte, bound int) (Message, int, error)

func decodeCommand1(b []byte, bound int) (Message, int, error) { return DecodeCommand(b, 1, bound) }
func decodeCommand2(b []byte, bound int) (Message, int, error) { return DecodeCommand(b, 2, bound) }

var messageCases = []struct {
	name    string
	decode  decoder
	bytes   string
	message Message
	text    string // of the type
}{
	{"hello", DecodeFirst, "00 01", Hello{Version: 1}, "hello"},
	{"hello of an unknown version", DecodeFirst, "00 FF", Hello{Version: 255}, "hello"},
	{"data hello", DecodeFirst, "1E C8", DataHello{Run: 200}, "data hello"},

	{"heartbeat", DecodeControl, "08 54 0102", Heartbeat{Mode: ModeTracing, SendBuffers: 0x102}, "heartbeat"},
	{"heartbeat with an unknown mode", DecodeControl, "08 41 0000", Heartbeat{Mode: 'A'}, "heartbeat"},
	{"data break", DecodeControl, "09 FFFFFFFE", DataBreak{Sequence: 1<<32 - 2}, "data break"},
	{"class transformed", DecodeControl, "28 0003 612F62", ClassReport{Result: TypeClassTransformed, Class: "a/b"}, "class transformed"},
	{"class ignored", DecodeControl, "29 0001 61", ClassReport{Result: TypeClassIgnored, Class: "a"}, "class ignored"},
	{"class transform failed", DecodeControl, "2A 0000", ClassReport{Result: TypeClassTransformFailed}, "class transform failed"},
	{"error on the control connection", DecodeControl, "63 0002 6F68", ErrorMessage{Text: "oh"}, "error"},

	{"map thread name", DecodeData, "0A 0102 00000304 0004 6D61696E", MapThreadName{Thread: 0x102, Time: 0x304, Name: "main"}, "map thread name"},
	{"map thread name without a name", DecodeData, "0A 0000 00000000 0000", MapThreadName{}, "map thread name"},
	{"map method signature", DecodeData, "0B 00000102 0003 612E62", MapMethod{Method: 0x102, Signature: "a.b"}, "map method signature"},
	{"map exception", DecodeData, "0C 00000102 0003 612E62", MapException{Exception: 0x102, Name: "a.b"}, "map exception"},
	{"map exception in modified UTF-8", DecodeData, "0C 00000001 000A C080 C3A9 EDA0BDEDB880", MapException{Exception: 1, Name: "\x00é😀"}, "map exception"},
	{"marker", DecodeData, "32 00000102 00000304 0001 6B 0002 7631", Marker{Time: 0x102, Sequence: 0x304, Key: "k", Value: "v1"}, "marker"},
	{"marker without key and value", DecodeData, "32 00000000 00000000 0000 0000", Marker{}, "marker"},
	{"error on a data connection", DecodeData, "63 0002 6F68", ErrorMessage{Text: "oh"}, "error"},

	{"configuration of version 1", decodeCommand1, "01 00000003 ACED00", Configuration{Data: []byte{0xAC, 0xED, 0x00}}, "configuration"},
	{"configuration of version 2", decodeCommand2, "01 0002 7B7D", ConfigurationV2{JSON: "{}"}, "configuration"},
	{"start", decodeCommand1, "02", Command{Of: TypeStart}, "start"},
	{"stop", decodeCommand1, "03", Command{Of: TypeStop}, "stop"},
	{"pause", decodeCommand1, "04", Command{Of: TypePause}, "pause"},
	{"unpause", decodeCommand2, "05", Command{Of: TypeUnpause}, "unpause"},
	{"suspend", decodeCommand2, "06", Command{Of: TypeSuspend}, "suspend"},
	{"unsuspend", decodeCommand2, "07", Command{Of: TypeUnsuspend}, "unsuspend"},
	{"data hello reply", decodeCommand1, "1F", DataHelloReply{}, "data hello reply"},
	{"error to the agent", decodeCommand1, "63 0002 6F68", ErrorMessage{Text: "oh"}, "error"},
}

func TestMessages(t *testing.T) {
	for _, c := range messageCases {
		t.Run(c.name, func(t *testing.T) {
			b := unhex(t, c.bytes)
			assert.Equal(t, b, c.message.AppendTo(nil))
			assert.Equal(t, MessageType(b[0]), c.message.Type())
			assert.Equal(t, c.text, c.message.Type().String())

			for _, behind := range []string{"", "FF"} {
				m, n, err := c.decode(append(unhex(t, c.bytes), unhex(t, behind)...), MaxString)
				require.NoError(t, err)
				assert.Equal(t, len(b), n)
				assert.Equal(t, c.message, m)
			}
			for end := range b {
				m, n, err := c.decode(b[:end], MaxString)
				require.NoError(t, err, "with %d of %d bytes", end, len(b))
				assert.Zero(t, n, "with %d of %d bytes", end, len(b))
				assert.Nil(t, m, "with %d of %d bytes", end, len(b))
			}
		})
	}
}

func TestEachDecoderAcceptsOnlyItsOwnMessages(t *testing.T) {
	decoders := map[string]struct {
		decode  decoder
		accepts []MessageType
	}{
		"first":   {DecodeFirst, []MessageType{TypeHello, TypeDataHello}},
		"control": {DecodeControl, []MessageType{TypeHeartbeat, TypeDataBreak, TypeClassTransformed, TypeClassIgnored, TypeClassTransformFailed, TypeError}},
		"data":    {DecodeData, []MessageType{TypeMapThreadName, TypeMapMethod, TypeMapException, TypeMarker, TypeError}},
		"command": {decodeCommand1, []MessageType{TypeConfiguration, TypeStart, TypeStop, TypePause, TypeUnpause, TypeSuspend, TypeUnsuspend, TypeDataHelloReply, TypeError}},
	}
	for name, d := range decoders {
		t.Run(name, func(t *testing.T) {
			accepts := map[MessageType]bool{}
			for _, typ := range d.accepts {
				accepts[typ] = true
			}
			for i := range 256 {
				typ := MessageType(i)
				b := make([]byte, 64) // the length of each string is 0
				b[0] = byte(typ)
				m, n, err := d.decode(b, MaxString)
				if accepts[typ] {
					require.NoError(t, err, typ)
					require.Equal(t, typ, m.Type())
					require.Positive(t, n)
					continue
				}
				var protocolError *ProtocolError
				require.ErrorAs(t, err, &protocolError, "%v", typ)
				assert.Zero(t, protocolError.Offset)
				assert.Zero(t, n)
				assert.Nil(t, m)
			}
		})
	}
}

func TestProtocolErrorsNameTheWrongBytes(t *testing.T) {
	event := "14 00000000 00000000 00000000 0000"
	cases := []struct {
		name   string
		decode decoder
		bytes  string
		bound  int
		text   string
	}{
		{
			"the project hello of version 4 is named", DecodeFirst, "10 04 00000001", MaxString,
			"byte 0: expected hello (0) or data hello (30), got project hello (16) of protocol version 4",
		},
		{
			"events before the handshake", DecodeFirst, event, MaxString,
			"byte 0: expected hello (0) or data hello (30), got method entry (20)",
		},
		{
			"an unknown type", DecodeFirst, "47", MaxString,
			"byte 0: expected hello (0) or data hello (30), got message type 71",
		},
		{
			"a visit of version 3", DecodeData, "0E", MaxString,
			"byte 0: expected a message of a data connection (map thread name, map method signature, map exception, method entry, method exit, exception, exception bubble, marker, error), got method visit (14)",
		},
		{
			"a call event on the control connection", DecodeControl, event, MaxString,
			"byte 0: expected a message of a control connection (heartbeat, data break, class transformed, class ignored, class transform failed, error), got method entry (20)",
		},
		{
			"a call event, which DecodeEvents has to read", DecodeData, event, MaxString,
			"byte 0: expected a message that is no call event, got a complete method entry",
		},
		{
			"a signature beyond the bound, before it has arrived", DecodeData, "0B 00000001 0401", 1024,
			"byte 5: expected a string of at most 1024 bytes in map method signature, got a length of 1025",
		},
		{
			"a thread name beyond the bound", DecodeData, "0A 0000 00000000 FFFF", 1024,
			"byte 7: expected a string of at most 1024 bytes in map thread name, got a length of 65535",
		},
		{
			"a marker's key beyond the bound", DecodeData, "32 00000000 00000000 0002", 1,
			"byte 9: expected a string of at most 1 bytes in marker, got a length of 2",
		},
		{
			"a marker's value beyond the bound", DecodeData, "32 00000000 00000000 0001 6B 0002", 1,
			"byte 12: expected a string of at most 1 bytes in marker, got a length of 2",
		},
		{
			"a class name beyond the bound", DecodeControl, "28 0005", 4,
			"byte 1: expected a string of at most 4 bytes in class transformed, got a length of 5",
		},
		{
			"a configuration beyond the bound, of more bytes than an int32 has", decodeCommand1, "01 FFFFFFFF", 1 << 20,
			"byte 1: expected a configuration of at most 1048576 bytes, got a length of 4294967295",
		},
		{
			"a configuration in JSON beyond the bound", decodeCommand2, "01 FFFF", 1024,
			"byte 1: expected a string of at most 1024 bytes in configuration, got a length of 65535",
		},
		{
			"a configuration of version 3", func(b []byte, bound int) (Message, int, error) { return DecodeCommand(b, 3, bound) }, "01 0000", 1024,
			"byte 0: expected a configuration of protocol version 1 or 2, got one of version 3",
		},
		{
			"a heartbeat to the agent", decodeCommand1, "08 54 0000", 1024,
			"byte 0: expected a message to an agent (configuration, start, stop, pause, unpause, suspend, unsuspend, data hello reply, error), got heartbeat (8)",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, n, err := c.decode(unhex(t, c.bytes), c.bound)
			assert.EqualError(t, err, c.text)
			assert.Zero(t, n)
			assert.Nil(t, m)
		})
	}
}

func TestStringsAtTheBoundAreAccepted(t *testing.T) {
	name := strings.Repeat("x", 100)
	b := MapThreadName{Name: name}.AppendTo(nil)
	m, n, err := DecodeData(b, len(name))
	require.NoError(t, err)
	assert.Equal(t, len(b), n)
	assert.Equal(t, MapThreadName{Name: name}, m)
}

func TestOneWrongByteReplacesOneCharacter(t *testing.T) {
	m, _, err := DecodeData(unhex(t, "0A 0000 00000000 0003 61 FF 62"), MaxString)
	require.NoError(t, err)
	assert.Equal(t, MapThreadName{Name: "a\uFFFDb"}, m)
}

func TestLongStringsAreCutAtACharacter(t *testing.T) {
	long := strings.Repeat("x", MaxString-1) + "é"
	for _, m := range []Message{
		MapThreadName{Name: long}, MapMethod{Signature: long}, MapException{Name: long},
		ClassReport{Result: TypeClassIgnored, Class: long}, ErrorMessage{Text: long}, Marker{Key: long, Value: long},
	} {
		b := m.AppendTo(nil)
		decode := DecodeData
		if m.Type() == TypeClassIgnored {
			decode = DecodeControl
		}
		got, n, err := decode(b, MaxString)
		require.NoError(t, err)
		assert.Equal(t, len(b), n)
		assert.LessOrEqual(t, n, MaxMessageSize(MaxString))
		assert.Contains(t, fmt.Sprint(got), strings.Repeat("x", MaxString-1))
		assert.NotContains(t, fmt.Sprint(got), "é")
	}
}

func TestMaxMessageSize(t *testing.T) {
	assert.Equal(t, MaxEventSize, MaxMessageSize(0))
	assert.Equal(t, 13+2*1000, MaxMessageSize(1000))
	assert.Equal(t, 13+2*65535, MaxMessageSize(1<<30))
}

func TestModes(t *testing.T) {
	for mode, text := range map[Mode]string{'I': "initializing", 'T': "tracing", 'P': "paused", 'S': "suspended", 'X': "shutting down"} {
		assert.True(t, mode.Known())
		assert.Equal(t, text, mode.String())
	}
	assert.False(t, Mode('t').Known())
	assert.Equal(t, "mode 116", Mode('t').String())
}

func TestCommandTypes(t *testing.T) {
	for i := range 256 {
		assert.Equal(t, i >= 2 && i <= 7, MessageType(i).IsCommand(), "type %d", i)
	}
}
