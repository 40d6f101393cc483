// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// attribute is NAME = VALUE or NAME := TYPE.
type attribute struct {
	// name contains dots, such as "packet.header".
	name  string
	where metadata.Position
	kind  attributeKind
	// text is a string, or words joined by dots.
	text   string
	number metadata.Number
	typ    metadata.Type
}

// attributeKind is the kind of an attribute's value.
type attributeKind uint8

const (
	attributeString attributeKind = iota
	attributeWord
	attributeNumber
	attributeType
)

var attributeKinds = [...]string{"a string", "a word", "a number", "a type"}

// block lists the attributes that a kind of block may have.
type block []entry

// entry is an attribute of a block, and the function that reads its value.
type entry struct {
	name string
	read func(attribute)
}

// set returns a function that sets a variable to the value of an attribute.
func set[T any](to *T, of func(attribute) T) func(attribute) {
	return func(a attribute) { *to = of(a) }
}

// setPresent is like set and also sets *present to true.
func setPresent[T any](to *T, present *bool, of func(attribute) T) func(attribute) {
	return func(a attribute) { *to, *present = of(a), true }
}

// read reads an attribute. It returns false if the block has no such attribute.
func (b block) read(a attribute) bool {
	for _, e := range b {
		if e.name == a.name {
			e.read(a)
			return true
		}
	}
	return false
}

// attributes reads a block in braces and passes each attribute to read, which returns false for an unknown one. Types
// that are declared between attributes belong to s. If s is nil, the block must contain no types.
func (p *Parser) attributes(s *scope, blockName string, read func(attribute) bool) {
	defer p.enter()()
	p.expect("{")
	names := map[string]bool{}
	for !p.accept("}") {
		if s != nil && p.beginsType() {
			p.typeDeclaration(s)
			continue
		}
		a := p.attribute(s)
		p.expect(";")
		if names[a.name] {
			p.fail(a.where, "one attribute "+a.name, "a second one")
		}
		names[a.name] = true
		if !read(a) {
			p.trace.Note(fmt.Sprintf("metadata, %s: %s has no attribute %q: ignored", a.where, blockName, a.name))
		}
	}
}

func (p *Parser) attribute(s *scope) attribute {
	a := attribute{where: p.tok.where}
	a.name = strings.Join(p.path("an attribute"), ".")
	if s != nil && p.accept(":=") {
		a.kind, a.typ = attributeType, p.typeSpecifier(s)
		return a
	}
	p.expect("=")
	switch p.tok.kind {
	case quoted:
		a.kind, a.text = attributeString, p.next().text
	case word:
		a.kind, a.text = attributeWord, strings.Join(p.path("a value"), ".")
	default:
		a.kind, a.number = attributeNumber, p.constant()
	}
	return a
}

// requireKind fails unless the attribute's value is of one of the kinds.
func (p *Parser) requireKind(a attribute, kinds ...attributeKind) {
	var names []string
	for _, k := range kinds {
		if a.kind == k {
			return
		}
		names = append(names, attributeKinds[k])
	}
	p.fail(a.where, strings.Join(names, " or ")+" for "+a.name, "%s", attributeKinds[a.kind])
}

// stringOf returns the value of an attribute that is a string or a word.
func (p *Parser) stringOf(a attribute) string {
	p.requireKind(a, attributeString, attributeWord)
	return a.text
}

func (p *Parser) unsignedOf(a attribute) uint64 {
	p.requireKind(a, attributeNumber)
	n, ok := a.number.Uint64()
	if !ok {
		p.fail(a.where, "a number of 0 or more for "+a.name, "%s", a.number)
	}
	return n
}

func (p *Parser) signedOf(a attribute) int64 {
	p.requireKind(a, attributeNumber)
	n, ok := a.number.Int64()
	if !ok {
		p.fail(a.where, "a number of 64 bits with sign for "+a.name, "%s", a.number)
	}
	return n
}

// booleanOf returns the value of an attribute that is true or false, 1 or 0.
func (p *Parser) booleanOf(a attribute) bool {
	p.requireKind(a, attributeWord, attributeNumber)
	if a.kind == attributeNumber {
		return a.number.Magnitude != 0
	}
	switch a.text {
	case "true", "TRUE":
		return true
	case "false", "FALSE":
		return false
	}
	p.fail(a.where, "true or false for "+a.name, "%q", a.text)
	return false
}

// structOf returns the value of an attribute that is a structure.
func (p *Parser) structOf(a attribute) *metadata.Struct {
	p.requireKind(a, attributeType)
	t, ok := a.typ.(*metadata.Struct)
	if !ok {
		p.fail(a.where, "a struct for "+a.name, "another type")
	}
	return t
}

// uuidOf returns the value of an attribute that is a UUID.
func (p *Parser) uuidOf(a attribute) (uuid [16]byte) {
	p.requireKind(a, attributeString)
	digits := strings.ReplaceAll(a.text, "-", "")
	if n, err := hex.Decode(uuid[:], []byte(digits[:min(len(digits), 32)])); err != nil || n != 16 || len(digits) != 32 {
		p.fail(a.where, "a UUID of 32 hexadecimal digits", "%q", a.text)
	}
	return uuid
}

// byteOrderOf returns the value of an attribute that is a byte order. native allows the byte order of the trace,
// which the trace itself cannot have.
func (p *Parser) byteOrderOf(a attribute, native bool) metadata.ByteOrder {
	p.requireKind(a, attributeWord)
	switch {
	case a.text == "le":
		return metadata.LittleEndian
	case a.text == "be" || a.text == "network":
		return metadata.BigEndian
	case a.text == "native" && native:
		return metadata.NativeOrder
	}
	p.fail(a.where, "a byte order", "%q", a.text)
	return 0
}
