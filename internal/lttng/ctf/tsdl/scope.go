// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import "github.com/callbraid/callbraid/internal/lttng/ctf/metadata"

// scope holds the names of types that are valid between two braces.
type scope struct {
	parent *scope
	// types by name: "uint8_t", "unsigned long *", "struct x", "variant x", "enum x".
	types map[string]metadata.Type
}

// inner returns a new scope inside s.
func (s *scope) inner() *scope { return &scope{parent: s} }

// lookup returns the type of that name, from the innermost scope outwards, or nil.
func (s *scope) lookup(name string) metadata.Type {
	for ; s != nil; s = s.parent {
		if t, ok := s.types[name]; ok {
			return t
		}
	}
	return nil
}

// declare names a type. The outermost scope may repeat a declaration.
func (p *Parser) declare(s *scope, name string, t metadata.Type, at metadata.Position) {
	if s == p.root && p.repeated(at, "the type "+name) {
		return
	}
	if _, ok := s.types[name]; ok {
		p.fail(at, "one declaration of the type "+name, "a second one")
	}
	if s.types == nil {
		s.types = map[string]metadata.Type{}
	}
	s.types[name] = t
}
