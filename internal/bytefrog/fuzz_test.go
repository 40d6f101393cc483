// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"bytes"
	"errors"
	"testing"
)

// fuzzPiece is the number of bytes of a captured connection in a seed: enough for every kind of message, and few enough
// for many runs a second.
const fuzzPiece = 600

// seedConnections adds the beginnings and ends of the connections of two captures.
func seedConnections(f *testing.F, pick func(control []byte, data [][]byte) [][]byte) {
	for _, name := range []string{"shop", "suspend"} {
		c := openCapture(f, name)
		for _, b := range pick(c.Control, c.Data) {
			f.Add(b[:min(len(b), fuzzPiece)])
			f.Add(b[max(0, len(b)-fuzzPiece):])
		}
	}
	for _, c := range messageCases {
		f.Add(unhex(f, c.bytes))
	}
	for _, c := range eventCases {
		f.Add(unhex(f, c.bytes))
	}
}

func FuzzDecodeEvents(f *testing.F) {
	seedConnections(f, func(_ []byte, data [][]byte) [][]byte {
		for i := range data {
			data[i] = data[i][dataHelloSize:]
		}
		return data
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		dst := make([]Event, 8)
		n, consumed := DecodeEvents(dst, b)
		if n > len(dst) || consumed > len(b) {
			t.Fatalf("expected at most %d events and %d bytes, got %d and %d", len(dst), len(b), n, consumed)
		}
		var again []byte
		for _, e := range dst[:n] {
			again = AppendEvent(again, e)
		}
		if !bytes.Equal(again, b[:consumed]) {
			t.Fatalf("decoded and encoded again: expected % X, got % X", b[:consumed], again)
		}
		// It stopped for one of its three reasons.
		if rest := b[consumed:]; n < len(dst) && len(rest) > 0 {
			if size := EventSize(MessageType(rest[0])); size > 0 && len(rest) >= size {
				t.Fatalf("expected another event at byte %d, got %d events", consumed, n)
			}
		}
	})
}

// checkDecoder decodes b as one message and checks the properties of all decoders. The low limit of strings makes
// longer ones likely.
func checkDecoder(t *testing.T, decode decoder, b []byte) {
	const bound = 64
	m, n, err := decode(b, bound)
	if err != nil {
		var protocolError *ProtocolError
		if !errors.As(err, &protocolError) {
			t.Fatalf("expected a ProtocolError, got %T", err)
		}
		if m != nil || n != 0 || protocolError.Offset >= len(b) {
			t.Fatalf("error %v with message %v of %d bytes in %d bytes", err, m, n, len(b))
		}
		return
	}
	if n == 0 {
		if m != nil {
			t.Fatalf("expected no message, got %v", m)
		}
		return
	}
	if n > len(b) || n > MaxMessageSize(bound) {
		t.Fatalf("expected at most %d bytes, got %d", len(b), n)
	}
	if m.Type() != MessageType(b[0]) {
		t.Fatalf("expected %v, got %v", MessageType(b[0]), m.Type())
	}
	// An invalid string is replaced; the result encodes and decodes to itself.
	encoded := m.AppendTo(nil)
	again, size, err := decode(encoded, 3*bound)
	if err != nil || size != len(encoded) || !equalMessages(m, again) {
		t.Fatalf("encoded and decoded again: expected %+v, got %+v of %d bytes, error %v", m, again, size, err)
	}
}

// equalMessages compares the encodings of messages; a Configuration is not comparable by ==.
func equalMessages(a, b Message) bool {
	return bytes.Equal(a.AppendTo(nil), b.AppendTo(nil))
}

func FuzzDecodeFirst(f *testing.F) {
	seedConnections(f, func(control []byte, data [][]byte) [][]byte { return append(data, control) })
	f.Fuzz(func(t *testing.T, b []byte) { checkDecoder(t, DecodeFirst, b) })
}

func FuzzDecodeControl(f *testing.F) {
	seedConnections(f, func(control []byte, _ [][]byte) [][]byte { return [][]byte{control[helloSize:]} })
	f.Fuzz(func(t *testing.T, b []byte) { checkDecoder(t, DecodeControl, b) })
}

func FuzzDecodeData(f *testing.F) {
	for _, name := range []string{"shop", "suspend"} {
		for _, text := range signatures(f, name) {
			f.Add(MapMethod{Method: 1, Signature: text}.AppendTo(nil))
		}
	}
	seedConnections(f, func(_ []byte, data [][]byte) [][]byte { return data })
	f.Fuzz(func(t *testing.T, b []byte) { checkDecoder(t, DecodeData, b) })
}

func FuzzDecodeCommand(f *testing.F) {
	for _, name := range []string{"shop", "maven"} {
		f.Add(Configuration{Data: openCapture(f, name).Configuration}.AppendTo(nil), uint8(1))
	}
	for _, c := range messageCases {
		f.Add(unhex(f, c.bytes), uint8(1))
		f.Add(unhex(f, c.bytes), uint8(2))
	}
	f.Fuzz(func(t *testing.T, b []byte, version uint8) {
		// Only the limit of a configuration is set; errors have the protocol's limit.
		m, n, err := DecodeCommand(b, version, 1<<10)
		var protocolError *ProtocolError
		switch {
		case err != nil && (!errors.As(err, &protocolError) || m != nil || n != 0 || protocolError.Offset >= len(b)):
			t.Fatalf("error %v with message %v of %d bytes in %d bytes", err, m, n, len(b))
		case n > len(b) || (n > 0) != (m != nil):
			t.Fatalf("message %v of %d bytes in %d bytes", m, n, len(b))
		}
		if c, ok := m.(Configuration); ok {
			checkConfiguration(t, c)
		}
		if c, ok := m.(ConfigurationV2); ok {
			checkConfiguration(t, c)
		}
	})
}

func FuzzParseAgentConfiguration(f *testing.F) {
	for _, name := range []string{"shop", "maven"} {
		f.Add(openCapture(f, name).Configuration)
	}
	f.Add([]byte(`{"runId":-56,"heartbeatInterval":500,"exclusions":[""],"inclusions":["^demo/"],"bufferMemoryBudget":1,"numDataSenders":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkConfiguration(t, Configuration{Data: data})
		checkConfiguration(t, ConfigurationV2{JSON: string(data)})
	})
}

// checkConfiguration reads m and, if that succeeds, writes and reads it again.
func checkConfiguration(t *testing.T, m Message) {
	c, err := ParseAgentConfiguration(m)
	if err != nil {
		return
	}
	for version := uint8(MinVersion); version <= MaxVersion; version++ {
		again, err := c.Message(version)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		got, err := ParseAgentConfiguration(again)
		if err != nil || !equalConfigurations(c, got) {
			t.Fatalf("written and read again in version %d: expected %+v, got %+v, error %v", version, c, got, err)
		}
	}
}
