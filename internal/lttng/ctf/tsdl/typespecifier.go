// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// basicWords are the words of C in names of types.
var basicWords = map[string]bool{
	"const": true, "unsigned": true, "signed": true, "long": true, "short": true,
	"int": true, "char": true, "float": true, "double": true, "void": true,
	"_Bool": true, "_Complex": true, "_Imaginary": true,
}

// typeSpecifier reads a type: a complete one, or the name of one.
func (p *Parser) typeSpecifier(s *scope) metadata.Type {
	defer p.enter()()
	at := p.tok.where
	if p.tok.kind != word {
		p.failToken("a type")
	}
	switch p.tok.text {
	case "struct":
		return p.structType(s)
	case "variant":
		return p.variantType(s)
	case "enum":
		return p.enumType(s)
	case "integer":
		return p.integerType()
	case "floating_point":
		return p.floatType()
	case "string":
		return p.stringType()
	}
	words := p.typeName()
	if t := s.lookup(strings.Join(words, " ")); t != nil {
		return t
	}
	plain := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "const" })
	if t := s.lookup(strings.Join(plain, " ")); t != nil {
		return t
	}
	p.fail(at, "a type that was declared before", "%q", strings.Join(words, " "))
	return nil
}

// typeName reads words of C and asterisks, or one other name.
func (p *Parser) typeName() []string {
	var words []string
	complete := false
	for p.tok.kind == word {
		basic := basicWords[p.tok.text]
		if !basic && complete {
			break
		}
		complete = complete || p.tok.text != "const"
		words = append(words, p.next().text)
		if !basic {
			break
		}
	}
	for p.is("*") || len(words) > 0 && p.is("const") {
		words = append(words, p.next().text)
	}
	return words
}

// structType reads: struct NAME { … } align(N). The name, or the braces and the alignment, are optional.
func (p *Parser) structType(s *scope) metadata.Type {
	at := p.next().where
	name := p.optionalName()
	if !p.is("{") {
		return p.declaredType(s, "struct", name, at)
	}
	members := p.members(s.inner())
	align := uint64(1)
	if p.accept("align") {
		p.expect("(")
		align = p.alignment()
		p.expect(")")
	}
	t := metadata.NewStruct(members, align)
	if name != "" {
		p.declare(s, "struct "+name, t, at)
	}
	return t
}

// optionalName reads a name if there is one.
func (p *Parser) optionalName() string {
	if p.tok.kind != word {
		return ""
	}
	return p.next().text
}

// declaredType returns a type that was declared before.
func (p *Parser) declaredType(s *scope, keyword, name string, at metadata.Position) metadata.Type {
	if name == "" {
		p.failToken("a name or {")
	}
	t := s.lookup(keyword + " " + name)
	if t == nil {
		p.fail(at, "a type that was declared before", "%q", keyword+" "+name)
	}
	return t
}

// members reads the fields of a struct or the options of a variant, in braces.
func (p *Parser) members(s *scope) []metadata.Member {
	p.expect("{")
	var members []metadata.Member
	names := map[string]bool{}
	for !p.accept("}") {
		if p.is("typealias") || p.is("typedef") {
			p.typeDeclaration(s)
			continue
		}
		named := p.beginsType()
		base := p.typeSpecifier(s)
		if named && p.accept(";") {
			continue // a type for the following fields
		}
		for {
			name, t := p.declarator(base)
			p.requireTag(base, name.where)
			if names[name.text] {
				p.fail(name.where, "one field of the name "+name.text, "a second one")
			}
			names[name.text] = true
			members = append(members, metadata.Member{Name: name.text, Type: t})
			if !p.accept(",") {
				break
			}
		}
		p.expect(";")
	}
	return members
}

// requireTag fails if the type is a variant without tag.
func (p *Parser) requireTag(t metadata.Type, at metadata.Position) {
	if v, ok := t.(*metadata.Variant); ok && v.Selector.Path == nil {
		p.fail(at, "a tag for the variant", "none")
	}
}

// variantType reads: variant NAME <TAG> { … }. All parts are optional, but not all at the same time. A variant that
// was declared without tag has the tag of the place where it is used.
func (p *Parser) variantType(s *scope) metadata.Type {
	at := p.next().where
	name := p.optionalName()
	var selector metadata.Ref
	if p.accept("<") {
		selector = p.reference()
		p.expect(">")
	}
	if !p.is("{") {
		t, ok := p.declaredType(s, "variant", name, at).(*metadata.Variant)
		if !ok {
			p.fail(at, "a variant", "another type")
		}
		if selector.Path == nil {
			return t
		}
		return &metadata.Variant{Selector: selector, Options: t.Options, ByLabel: true}
	}
	t := &metadata.Variant{Selector: selector, ByLabel: true}
	for _, m := range p.members(s.inner()) {
		t.Options = append(t.Options, metadata.Option{Name: m.Name, Type: m.Type})
	}
	if len(t.Options) == 0 {
		p.fail(at, "a variant with options", "none")
	}
	if name != "" {
		p.declare(s, "variant "+name, t, at)
	}
	return t
}

// alignment reads an alignment in bits.
func (p *Parser) alignment() uint64 {
	at := p.tok.where
	n := p.unsigned("an alignment")
	p.checkAlignment(n, at)
	return n
}

// MaxAlignment is the largest alignment in bits that the parser accepts.
const MaxAlignment = 1 << 20

func (p *Parser) checkAlignment(n uint64, at metadata.Position) {
	if n == 0 || n&(n-1) != 0 || n > MaxAlignment {
		p.fail(at, fmt.Sprintf("an alignment that is a power of two up to %d", MaxAlignment), "%d", n)
	}
}
