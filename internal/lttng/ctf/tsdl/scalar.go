// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// integerType reads: integer { size = N; … }.
func (p *Parser) integerType() metadata.Type {
	at := p.next().where
	t := &metadata.Integer{Base: 10}
	p.attributes(nil, "an integer", block{
		{"size", func(a attribute) {
			t.Size = p.unsignedOf(a)
			if t.Size == 0 || t.Size > 64 {
				p.fail(a.where, "a size of 1 to 64 bits", "%d", t.Size)
			}
		}},
		{"align", func(a attribute) {
			t.Align = p.unsignedOf(a)
			p.checkAlignment(t.Align, a.where)
		}},
		{"signed", set(&t.Signed, p.booleanOf)},
		{"byte_order", func(a attribute) { t.Order = p.byteOrderOf(a, true) }},
		{"base", set(&t.Base, p.baseOf)},
		{"encoding", set(&t.Encoding, p.encodingOf)},
		{"map", set(&t.Clock, p.clockOf)},
	}.read)
	if t.Size == 0 {
		p.fail(at, "an integer with a size", "none")
	}
	if t.Align == 0 {
		t.Align = defaultAlignment(t.Size)
	}
	return t
}

// defaultAlignment returns 8 for fields of whole bytes, and 1 for others.
func defaultAlignment(size uint64) uint64 {
	if size%8 == 0 {
		return 8
	}
	return 1
}

// baseOf returns the value of base: a number or one of its names.
func (p *Parser) baseOf(a attribute) uint8 {
	p.requireKind(a, attributeNumber, attributeWord)
	if a.kind == attributeNumber {
		switch a.number.Magnitude {
		case 2, 8, 10, 16:
			return uint8(a.number.Magnitude)
		}
		p.fail(a.where, "base 2, 8, 10 or 16", "%s", a.number)
	}
	switch a.text {
	case "decimal", "dec", "d", "i", "u":
		return 10
	case "hexadecimal", "hex", "x", "X", "p":
		return 16
	case "octal", "oct", "o":
		return 8
	case "binary", "b":
		return 2
	}
	p.fail(a.where, "a base", "%q", a.text)
	return 0
}

// encodingOf returns the value of encoding.
func (p *Parser) encodingOf(a attribute) metadata.Encoding {
	switch p.stringOf(a) {
	case "none":
		return metadata.NoEncoding
	case "UTF8", "utf8", "UTF-8", "utf-8":
		return metadata.UTF8
	case "ASCII", "ascii":
		return metadata.ASCII
	}
	p.fail(a.where, "encoding none, UTF8 or ASCII", "%q", a.text)
	return 0
}

// clockOf returns the name of the clock in: map = clock.NAME.value.
func (p *Parser) clockOf(a attribute) string {
	p.requireKind(a, attributeWord)
	name, begins := strings.CutPrefix(a.text, "clock.")
	name, ends := strings.CutSuffix(name, ".value")
	if !begins || !ends || name == "" {
		p.fail(a.where, "clock.NAME.value", "%s", a.text)
	}
	return name
}

// floatType reads: floating_point { exp_dig = N; mant_dig = N; … }.
func (p *Parser) floatType() metadata.Type {
	at := p.next().where
	t := &metadata.Float{}
	var exponent, mantissa uint64
	p.attributes(nil, "a floating point number", block{
		{"exp_dig", set(&exponent, p.unsignedOf)},
		{"mant_dig", set(&mantissa, p.unsignedOf)},
		{"align", func(a attribute) {
			t.Align = p.unsignedOf(a)
			p.checkAlignment(t.Align, a.where)
		}},
		{"byte_order", func(a attribute) { t.Order = p.byteOrderOf(a, true) }},
	}.read)
	switch {
	case exponent == 8 && mantissa == 24:
		t.Size = 32
	case exponent == 11 && mantissa == 53:
		t.Size = 64
	default:
		p.fail(at, "exp_dig and mant_dig 8 and 24, or 11 and 53", "%d and %d", exponent, mantissa)
	}
	if t.Align == 0 {
		t.Align = defaultAlignment(t.Size)
	}
	return t
}

// stringType reads: string, or string { encoding = …; }.
func (p *Parser) stringType() metadata.Type {
	p.next()
	t := &metadata.String{Encoding: metadata.UTF8}
	if !p.is("{") {
		return t
	}
	p.attributes(nil, "a string", func(a attribute) bool {
		if a.name != "encoding" {
			return false
		}
		if e := p.encodingOf(a); e != metadata.NoEncoding {
			t.Encoding = e
		}
		return true
	})
	return t
}
