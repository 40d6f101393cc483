// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"fmt"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// beginsType reports whether the next token begins the declaration of a type and not an attribute.
func (p *Parser) beginsType() bool {
	if p.tok.kind != word {
		return false
	}
	switch p.tok.text {
	case "typealias", "typedef", "struct", "variant", "enum":
		return true
	}
	return false
}

// typeDeclaration reads a typealias, a typedef, or a named type, and the semicolon. A named type needs none: the grammar
// demands it, but a public test suite has such traces, and babeltrace2 reads them.
func (p *Parser) typeDeclaration(s *scope) {
	switch {
	case p.is("typealias"):
		p.typealias(s)
	case p.is("typedef"):
		p.typedef(s)
	case p.beginsType():
		p.typeSpecifier(s)
		p.accept(";")
		return
	default:
		p.failToken("a declaration")
	}
	p.expect(";")
}

// typealias reads: typealias TYPE := NAME, where NAME consists of words and asterisks.
func (p *Parser) typealias(s *scope) {
	at := p.next().where
	t := p.typeSpecifier(s)
	p.expect(":=")
	var words []string
	for p.tok.kind == word || p.is("*") {
		words = append(words, p.next().text)
	}
	if len(words) == 0 {
		p.failToken("the name of a type")
	}
	p.declare(s, strings.Join(words, " "), t, at)
}

// typedef reads: typedef TYPE NAME[…], NAME[…].
func (p *Parser) typedef(s *scope) {
	at := p.next().where
	base := p.typeSpecifier(s)
	for {
		name, t := p.declarator(base)
		p.declare(s, name.text, t, at)
		if !p.accept(",") {
			return
		}
	}
}

// declarator reads the name of a field or type and any array lengths after it. It returns the name, and the type that
// these lengths make of base.
func (p *Parser) declarator(base metadata.Type) (token, metadata.Type) {
	name, lengths := p.directDeclarator()
	if len(lengths) > 0 && len(lengths)+metadata.Dimensions(base, maxDepth) > maxDepth {
		p.fail(name.where, fmt.Sprintf("an array of at most %d dimensions", maxDepth), "more")
	}
	// The first length belongs to the outermost array.
	for i := len(lengths) - 1; i >= 0; i-- {
		base = &metadata.Array{Element: base, Length: lengths[i].number, LengthRef: lengths[i].ref}
	}
	return name, base
}

// length is the content of brackets: a number, or the path of a field.
type length struct {
	number uint64
	ref    *metadata.Ref
}

// directDeclarator reads NAME, or a declarator in parentheses, and brackets.
func (p *Parser) directDeclarator() (name token, lengths []length) {
	defer p.enter()()
	if p.accept("(") {
		name, lengths = p.directDeclarator()
		p.expect(")")
	} else {
		name = p.word("a name")
	}
	for p.accept("[") {
		if len(lengths) == maxDepth {
			p.failToken(fmt.Sprintf("at most %d dimensions of an array", maxDepth))
		}
		if p.tok.kind == word {
			ref := p.reference()
			lengths = append(lengths, length{ref: &ref})
		} else {
			lengths = append(lengths, length{number: p.unsigned("the length of an array")})
		}
		p.expect("]")
	}
	return name, lengths
}
