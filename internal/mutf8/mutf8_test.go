// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mutf8

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(tb, err)
	return b
}

// The bytes are the output of java.io.DataOutputStream.writeUTF of JDK 17.
var exact = []struct{ name, text, bytes string }{
	{"nothing", "", ""},
	{"ASCII", "demo/Shop", "64656D6F2F53686F70"},
	{"the first and the last in one byte", "\x01\x7F", "01 7F"},
	{"NUL in two bytes", "a\x00b", "61 C080 62"},
	{"the first and the last in two bytes", "\u0080\u07FF", "C280 DFBF"},
	{"the first and the last in three bytes", "\u0800\uFFFF", "E0A080 EFBFBF"},
	{"beside the surrogates", "\uD7FF\uE000", "ED9FBF EE8080"},
	{"the first pair of surrogates", "\U00010000", "EDA080EDB080"},
	{"the last pair of surrogates", "\U0010FFFF", "EDAFBFEDBFBF"},
	{"a smiling face", "x😀y", "78 EDA0BDEDB880 79"},
	{"the replacement character itself", "\uFFFD", "EFBFBD"},
}

func TestExactText(t *testing.T) {
	for _, c := range exact {
		t.Run(c.name, func(t *testing.T) {
			b := unhex(t, c.bytes)
			assert.Equal(t, b, Append([]byte{}, c.text))
			assert.Equal(t, len(b), Len(c.text))

			got, err := DecodeStrict(b)
			require.NoError(t, err)
			assert.Equal(t, c.text, got)
			assert.Equal(t, c.text, Decode(b))
		})
	}
}

func TestAppendReplacesBytesThatAreNotUTF8(t *testing.T) {
	for text, want := range map[string]string{
		"a\xFFb":             "a\uFFFDb",
		"\xC3":               "\uFFFD",
		"\xED\xA0\x80":       "\uFFFD\uFFFD\uFFFD", // a surrogate, which is invalid in Go strings
		"a\xF0\x9F\x98":      "a\uFFFD\uFFFD\uFFFD",
		"\xC0\x80":           "\uFFFD\uFFFD",
		"é\xE2\x82good\x80😀": "é\uFFFD\uFFFDgood\uFFFD😀",
	} {
		assert.Equal(t, Append(nil, want), Append(nil, text), "%q", text)
		assert.Equal(t, len(Append(nil, text)), Len(text), "%q", text)
	}
}

var malformed = []struct{ name, bytes, strict, lenient string }{
	{"a zero byte", "61 00 62", "byte 1: expected a character in modified UTF-8, got 00 62", "a\x00b"},
	{"a byte that begins nothing", "61 FF 62", "byte 1: expected a character in modified UTF-8, got FF 62", "a\uFFFDb"},
	{"a continuation without a beginning", "80 61", "byte 0: expected a character in modified UTF-8, got 80 61", "\uFFFDa"},
	{"a character cut off in two bytes", "61 C3", "byte 1: expected a character in modified UTF-8, got C3", "a\uFFFD"},
	{"a character cut off in three bytes", "E282", "byte 0: expected a character in modified UTF-8, got E2 82", "\uFFFD\uFFFD"},
	{"an A in two bytes", "C181", "byte 0: expected a character in modified UTF-8, got C1 81", "\uFFFD\uFFFD"},
	{"a NUL in three bytes", "E08080", "byte 0: expected a character in modified UTF-8, got E0 80 80", "\uFFFD\uFFFD\uFFFD"},
	{"four bytes of plain UTF-8", "61 F09F9880", "byte 1: expected a character in modified UTF-8, got F0 9F 98 80, four bytes of plain UTF-8", "a😀"},
	{"a high surrogate alone", "61 EDA0BD 62", "byte 1: expected a character in modified UTF-8, got ED A0 BD, a surrogate without its partner", "a\uFFFDb"},
	{"a low surrogate alone", "EDB880", "byte 0: expected a character in modified UTF-8, got ED B8 80, a surrogate without its partner", "\uFFFD"},
	{"two low surrogates", "EDB880EDB880", "byte 0: expected a character in modified UTF-8, got ED B8 80, a surrogate without its partner", "\uFFFD\uFFFD"},
	{"two high surrogates, the second with its partner", "EDA0BDEDA0BDEDB880", "byte 0: expected a character in modified UTF-8, got ED A0 BD, a surrogate without its partner", "\uFFFD😀"},
	{"a pair that is cut off", "EDA0BDEDB8", "byte 0: expected a character in modified UTF-8, got ED A0 BD, a surrogate without its partner", "\uFFFD\uFFFD\uFFFD"},
	{"a wrong byte among good ones", "C3A9 FE C080 EDA0BDEDB880", "byte 2: expected a character in modified UTF-8, got FE C0 80", "é\uFFFD\x00😀"},
}

func TestMalformedText(t *testing.T) {
	for _, c := range malformed {
		t.Run(c.name, func(t *testing.T) {
			b := unhex(t, c.bytes)
			_, err := DecodeStrict(b)
			assert.EqualError(t, err, c.strict)
			assert.Equal(t, c.lenient, Decode(b))
		})
	}
}

func TestAppendShort(t *testing.T) {
	room := func(left int) string { return strings.Repeat("x", MaxShort-left) }
	cases := []struct {
		name, text string
		length     int
		kept       string
	}{
		{"nothing", "", 0, ""},
		{"a word", "word", 4, "word"},
		{"as much as there is room for", room(0), MaxShort, room(0)},
		{"one byte more", room(0) + "y", MaxShort, room(0)},
		{"NUL with room for one byte", room(1) + "\x00", MaxShort - 1, room(1)},
		{"NUL that just fits", room(2) + "\x00y", MaxShort, room(2) + "\x00"},
		{"three bytes with room for two", room(2) + "€€", MaxShort - 2, room(2)},
		{"a pair of surrogates with room for one of them", room(5) + "😀", MaxShort - 5, room(5)},
		{"a pair of surrogates that just fits", room(6) + "😀😀", MaxShort, room(6) + "😀"},
		{"nothing fits behind the cut, however short", room(2) + "€y", MaxShort - 2, room(2)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := AppendShort([]byte("front"), c.text)
			require.Equal(t, "front", string(b[:5]))
			b = b[5:]
			assert.Equal(t, c.length, int(binary.BigEndian.Uint16(b)))
			assert.Len(t, b, 2+c.length)
			got, err := DecodeStrict(b[2:])
			require.NoError(t, err)
			assert.True(t, c.kept == got)
		})
	}
}

func TestPlainTextIsDecodedWithOneAllocation(t *testing.T) {
	b := []byte("demo/Shop$Order.process;0;()Ljava/lang/String;")
	var s string
	assert.Equal(t, 1.0, testing.AllocsPerRun(100, func() { s = Decode(b) }))
	assert.Equal(t, 1.0, testing.AllocsPerRun(100, func() { s, _ = DecodeStrict(b) }))
	assert.Equal(t, string(b), s)
}

func FuzzDecode(f *testing.F) {
	for _, c := range exact {
		f.Add(unhex(f, c.bytes))
	}
	for _, c := range malformed {
		f.Add(unhex(f, c.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		lenient := Decode(b)
		if !utf8.ValidString(lenient) {
			t.Fatalf("% X: expected valid UTF-8, got %q", b, lenient)
		}
		if len(lenient) > 3*len(b) {
			t.Fatalf("% X: expected at most %d bytes, got %d", b, 3*len(b), len(lenient))
		}
		strict, err := DecodeStrict(b)
		if err != nil {
			return
		}
		if strict != lenient {
			t.Fatalf("% X: expected the same from both, got %q and %q", b, strict, lenient)
		}
		if again := Append(nil, strict); string(again) != string(b) {
			t.Fatalf("% X: expected the same bytes again, got % X", b, again)
		}
	})
}

func FuzzAppend(f *testing.F) {
	for _, c := range exact {
		f.Add(c.text)
	}
	f.Add("a\xFF\xED\xA0\x80")
	f.Fuzz(func(t *testing.T, s string) {
		want := string([]rune(s)) // each byte that is not UTF-8 becomes U+FFFD
		b := Append(nil, s)
		if len(b) != Len(s) {
			t.Fatalf("%q: expected %d bytes, got %d", s, Len(s), len(b))
		}
		got, err := DecodeStrict(b)
		if err != nil || got != want {
			t.Fatalf("%q: expected %q again, got %q, error %v", s, want, got, err)
		}
		for _, c := range b {
			if c == 0 {
				t.Fatalf("%q: expected no zero byte, got % X", s, b)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := []byte("org/apache/maven/model/building/DefaultModelBuilder.build;1;()V")
	b.ReportAllocs()
	for b.Loop() {
		Decode(text)
	}
}
