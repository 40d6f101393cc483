// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import "github.com/callbraid/callbraid/internal/lttng/ctf/metadata"

// enumType reads: enum NAME : TYPE { LABEL = VALUE, LABEL = FROM ... TO, LABEL }. Without a type, the container is
// the type int.
func (p *Parser) enumType(s *scope) metadata.Type {
	at := p.next().where
	name := p.optionalName()
	var container metadata.Type
	if p.accept(":") {
		container = p.typeSpecifier(s)
	}
	if !p.is("{") {
		return p.declaredType(s, "enum", name, at)
	}
	if container == nil {
		if container = s.lookup("int"); container == nil {
			p.fail(at, "the type of an enumeration, or a type int", "none")
		}
	}
	integer, ok := container.(*metadata.Integer)
	if !ok {
		p.fail(at, "an enumeration of an integer type", "another type")
	}
	t := *integer
	t.Enum, t.Mappings = true, p.mappings()
	if name != "" {
		p.declare(s, "enum "+name, &t, at)
	}
	return &t
}

// mappings reads labels and their values, in braces. A label without value has the number after that of the previous
// label, the first one has 0. A label that occurs several times stands for all its values.
func (p *Parser) mappings() []metadata.Mapping {
	p.expect("{")
	var mappings []metadata.Mapping
	index := map[string]int{}
	next, more := metadata.Number{}, true
	for !p.accept("}") {
		if p.tok.kind != word && p.tok.kind != quoted {
			p.failToken("a label")
		}
		label := p.next()
		var r metadata.Range
		switch {
		case p.accept("="):
			r = p.numberRange()
		case !more:
			p.fail(label.where, "a value for the label", "none, after the largest number")
		default:
			r = metadata.Range{Low: next, High: next}
		}
		next, more = r.High.Next()
		i, known := index[label.text]
		if !known {
			i = len(mappings)
			index[label.text] = i
			mappings = append(mappings, metadata.Mapping{Label: label.text})
		}
		mappings[i].Ranges = append(mappings[i].Ranges, r)
		if !p.is("}") {
			p.expect(",")
		}
	}
	return mappings
}

// numberRange reads: VALUE, or FROM ... TO.
func (p *Parser) numberRange() metadata.Range {
	at := p.tok.where
	low := p.constant()
	high := low
	if p.accept("...") {
		high = p.constant()
	}
	if low.Compare(high) > 0 {
		p.fail(at, "a range from low to high", "%s ... %s", low, high)
	}
	return metadata.Range{Low: low, High: high}
}
