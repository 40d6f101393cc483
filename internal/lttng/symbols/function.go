// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Function is what is known of an address. It doesn't change: it may be kept, and
// read by several goroutines.
type Function struct {
	// Qualified is the fully qualified name without parameters, demangled:
	// "shop::Order::pay". Of an address without function it is "object+0xoffset",
	// of one without object "0xaddress"; so are Display and Text.
	Qualified string
	// Display is class and method, or the last two parts of whatever the name has:
	// "Order::pay".
	Display string
	// Text is the name as the file has it: "_ZN4shop5Order3payEi".
	Text string
	// Object is the path of the object, as the tracer told it; empty: the address
	// is in no object.
	Object string
	// Offset is the address minus the object's base, or the address itself where
	// there is no object.
	Offset uint64
	// Named reports whether the name is that of a function in the object's file.
	Named bool
}

// MaxNameBytes bounds each name of a Function; longer ones are cut.
const MaxNameBytes = 16 << 10

// namedFunction is the function of that symbol.
func namedFunction(symbol, object string, offset uint64) *Function {
	n := demangled(symbol)
	return &Function{
		Qualified: n.qualified,
		Display:   n.display,
		Text:      printable(symbol),
		Object:    object,
		Offset:    offset,
		Named:     true,
	}
}

// unnamedFunction is an address in an object of which no function is known.
func unnamedFunction(object string, offset uint64) *Function {
	name := fmt.Sprintf("%s+0x%x", path.Base(object), offset)
	return &Function{Qualified: name, Display: name, Text: name, Object: object, Offset: offset}
}

// bareAddress is an address outside of all objects.
func bareAddress(addr uint64) *Function {
	name := "0x" + strconv.FormatUint(addr, 16)
	return &Function{Qualified: name, Display: name, Text: name, Offset: addr}
}

// printable is s as a name can be: valid UTF-8 of at most MaxNameBytes. It shares
// no memory with s.
func printable(s string) string {
	if len(s) > MaxNameBytes {
		n := MaxNameBytes
		for n > MaxNameBytes-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	if !utf8.ValidString(s) {
		return strings.ToValidUTF8(s, "?")
	}
	return strings.Clone(s)
}
