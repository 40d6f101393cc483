// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// AttributeClass is the attribute of a class.
const AttributeClass = "ruby.class"

// MaxLine bounds the numbers of lines. No file has as many lines.
const MaxLine = 1 << 31

// MaxTextBytes is the most bytes of a text. Longer texts are cut.
const MaxTextBytes = 1024

// ValidText returns a text as valid UTF-8 of at most MaxTextBytes, for attributes. Bytes that
// are no UTF-8 become U+FFFD.
func ValidText(b []byte) string {
	if len(b) > MaxTextBytes {
		cut := MaxTextBytes
		for cut > MaxTextBytes-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
			cut--
		}
		b = b[:cut]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// ValidString returns ValidText of a string.
func ValidString(s string) string { return ValidText([]byte(s)) }

// addressPrefix is in front of the address of an object in the name of an anonymous class,
// such as #<Class:0x00007f01999002a8>.
var addressPrefix = []byte(":0x")

// WithoutAddresses returns the name of a class without its addresses, because each anonymous
// class has its own address.
func WithoutAddresses(name []byte) []byte {
	at := bytes.Index(name, addressPrefix)
	if at < 0 {
		return name
	}
	plain := make([]byte, 0, len(name))
	for ; at >= 0; at = bytes.Index(name, addressPrefix) {
		plain, name = append(plain, name[:at]...), name[at+len(addressPrefix):]
		name = bytes.TrimLeft(name, "0123456789abcdef")
	}
	return append(plain, name...)
}

// Same reports whether two texts are the same bytes of one message. It doesn't compare the bytes,
// because all allocations of a file refer to the same name, which may be long.
func Same(a, b []byte) bool {
	return len(a) == len(b) && (a == nil) == (b == nil) && (len(a) == 0 || &a[0] == &b[0])
}
