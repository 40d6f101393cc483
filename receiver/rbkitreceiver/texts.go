// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxTextBytes bounds texts. Longer ones are cut.
const maxTextBytes = 1024

// validText is a text as it may stand in attributes: UTF-8, and not too long.
func validText(b []byte) string {
	if len(b) > maxTextBytes {
		cut := maxTextBytes
		for cut > maxTextBytes-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
			cut--
		}
		b = b[:cut]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// text is a text of a server as it may stand in attributes.
func text(s string) string { return validText([]byte(s)) }

// addressPrefix is in front of the address of an object in the name of an anonymous class,
// such as #<Class:0x00007f01999002a8>.
var addressPrefix = []byte(":0x")

// withoutAddresses is the name of a class without the addresses in it: each anonymous
// class has another one.
func withoutAddresses(name []byte) []byte {
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
