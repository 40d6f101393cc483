// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"fmt"
	"path"
)

// Name returns the function at an address, which is never nil. The first call for an object reads its file. Each call
// allocates a new Function, so callers that call it often should cache the result, with a bound.
//
// The Function of an address stays the same until its object is unmapped or reports another build ID, or an object is
// mapped where there was none. It may also change if the object's table was evicted and its file was replaced.
func (o *Objects) Name(addr uint64) *Function {
	b := o.find(addr)
	if b == nil {
		return bareAddress(addr)
	}
	if t := o.table(b); t != nil {
		inFile := t.fileAddress(b.base, addr)
		if i := t.around(inFile); i >= 0 {
			s := t.symbols[i]
			f := namedFunction(string(nameAt(t.names, s.name)), b.identity.path, addr-b.base, s.start+uint64(s.size)-inFile)
			f.File, f.Line, f.NoLine = t.lines.at(i)
			return f
		}
	}
	return unnamedFunction(b.identity.path, addr-b.base)
}

// Start returns the address of the function that contains an address, or 0 if it is not known. It is not known before
// the first Name in its object, because Start reads no file.
func (o *Objects) Start(addr uint64) uint64 {
	b := o.find(addr)
	if b == nil || b.source != fromTable {
		return 0
	}
	t := o.files.cached(b.key)
	if t == nil {
		return 0
	}
	inFile := t.fileAddress(b.base, addr)
	i := t.around(inFile)
	if i < 0 {
		return 0
	}
	start := t.symbols[i].start + (addr - inFile)
	if t.thumb {
		start |= 1 // as in pointers to functions
	}
	return start
}

// table returns the table of an object's functions, or nil.
func (o *Objects) table(b *object) *table {
	if o.files == nil || b.buildIDFollows || b.source == fromNowhere || !path.IsAbs(b.identity.path) {
		return nil
	}
	if b.source == fromTable {
		if t := o.files.cached(b.key); t != nil {
			return t
		}
	}
	key, t := o.files.table(b.identity)
	if t != nil && !t.fits(b.base) {
		o.files.report(b.identity, fmt.Errorf("expected an object that can lie at 0x%x, got one for 0x%x", b.base, t.first))
		t = nil
	}
	if t == nil || b.source == fromTable && !key.same(b.key) {
		b.source = fromNowhere
		return nil
	}
	b.source, b.key = fromTable, key
	return t
}
