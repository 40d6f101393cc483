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

// Function is the description of an address. It is immutable, and several goroutines may read it.
type Function struct {
	// Qualified is the demangled, fully qualified name without parameters: "shop::Order::pay". If no function
	// contains the address, it is "object+0xoffset", and without object "0xaddress". Then Display and Text are equal
	// to it.
	Qualified string
	// Display is class and method, or the last two parts of other names: "Order::pay".
	Display string
	// Text is the name in the file: "_ZN4shop5Order3payEi".
	Text string
	// Object is the path of the object as reported by the tracer, or "" if no object contains the address.
	Object string
	// Offset is the address minus the object's base, or the address itself without object.
	Offset uint64
	// Size is the number of bytes from the address to the end of the function, or 0 if that is not known.
	Size uint64
	// File and Line are the source file and line at which the function begins, "" and 0 if they are not known.
	File string
	Line uint32
	// NoLine is the reason why a function with a name has no line, "" if it has one or Settings.SourceLines is not set.
	NoLine string
	// Named reports whether the name is that of a function in the object's file.
	Named bool
}

// MaxNameBytes bounds each name of a Function. Longer names are truncated.
const MaxNameBytes = 16 << 10

// namedFunction returns the function of a symbol.
func namedFunction(symbol, object string, offset, size uint64) *Function {
	n := demangled(symbol)
	return &Function{
		Qualified: n.qualified,
		Display:   n.display,
		Text:      printable(symbol),
		Object:    object,
		Offset:    offset,
		Size:      size,
		Named:     true,
	}
}

// unnamedFunction returns the Function of an address without a known function in an object.
func unnamedFunction(object string, offset uint64) *Function {
	name := fmt.Sprintf("%s+0x%x", path.Base(object), offset)
	return &Function{Qualified: name, Display: name, Text: name, Object: object, Offset: offset}
}

// bareAddress returns the Function of an address outside all objects.
func bareAddress(addr uint64) *Function {
	name := "0x" + strconv.FormatUint(addr, 16)
	return &Function{Qualified: name, Display: name, Text: name, Offset: addr}
}

// printable returns s as valid UTF-8 of at most MaxNameBytes. The result shares no memory with s.
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
