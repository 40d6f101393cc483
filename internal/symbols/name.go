// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"fmt"
	"path"
)

// Name returns the function at an address, which is never nil. It allocates, and
// reads the object's file, only when the address is seen for the first time.
//
// The Function of an address stays the same value until its object is unmapped or
// turns out to have another build ID, or an object is mapped where none was; it may
// become another pointer.
func (o *Objects) Name(addr uint64) *Function {
	b := o.find(addr)
	if b == nil {
		if f := o.outside[addr]; f != nil {
			return f
		}
		f := bareAddress(addr)
		o.makeRoom(f)
		o.outside[addr] = f
		return f
	}
	if f := b.names[addr-b.base]; f != nil {
		return f
	}
	f := o.function(b, addr)
	o.makeRoom(f)
	if b.names == nil {
		b.names = map[uint64]*Function{}
	}
	b.names[addr-b.base] = f
	return f
}

// makeRoom counts a name that is to be kept; where the bound is reached, all others
// are forgotten.
func (o *Objects) makeRoom(f *Function) {
	if o.namesBytes+f.bytes() > maxNamesBytes {
		clear(o.outside)
		for _, b := range o.loaded {
			clear(b.names)
		}
		o.namesBytes = 0
	}
	o.namesBytes += f.bytes()
}

// function makes the Function of an address in an object.
func (o *Objects) function(b *object, addr uint64) *Function {
	if t := o.table(b); t != nil {
		if name := t.function(t.fileAddress(b.base, addr)); name != nil {
			return namedFunction(string(name), b.identity.path, addr-b.base)
		}
	}
	return unnamedFunction(b.identity.path, addr-b.base)
}

// table returns the table of an object's functions; nil: there is none.
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
