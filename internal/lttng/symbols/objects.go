// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// DefaultMaxObjects is how many objects a process has at most: large programs have some
// hundreds.
const DefaultMaxObjects = 4096

// Mapping is an object that is loaded in a process.
type Mapping struct {
	// Base is the address where the object's first loadable segment begins. It is
	// not the load bias (l_addr of dlopen's link_map), which is another address where
	// the file doesn't begin at 0.
	Base uint64
	// Size is how many bytes of the address space it takes from there, holes
	// between segments included. An object of size 0 covers nothing.
	Size uint64
	// Path is the object's file in the machine where the program runs. A name that
	// is no absolute path ("[vdso]") is of an object without a file.
	Path string
	// BuildID is what the object has as one; empty: it has none.
	BuildID []byte
	// BuildIDFollows says that the object has a build ID that is told later, by
	// SetBuildID: until then no file is looked for.
	BuildIDFollows bool
	// DebugLink is the name of a file with debug information, without folder;
	// empty: none is known.
	DebugLink string
}

// ErrTooManyObjects is the error of Objects.Map where a process has as many objects
// as it may have.
var ErrTooManyObjects = errors.New("too many objects are loaded")

// Objects are what is loaded in the address space of one process. One goroutine at
// a time may use them.
type Objects struct {
	files *Files
	most  int
	// loaded are sorted by base, and don't overlap.
	loaded []*object
}

// object is one that is loaded.
type object struct {
	base, size     uint64
	identity       identity
	buildIDFollows bool
	// source says where names come from.
	source source
	// key is that of the object's table, where source is fromTable.
	key tableKey
}

// source is where the names of an object come from. It changes no more once it was
// asked for: a function has the same name for as long as the object is loaded.
type source uint8

const (
	notAsked source = iota
	fromTable
	fromNowhere
)

// NewObjects returns an empty address space for at most that many objects, whose
// names come from files; nil: from nowhere.
func NewObjects(files *Files, most int) *Objects {
	return &Objects{files: files, most: most}
}

// Len is the number of objects.
func (o *Objects) Len() int { return len(o.loaded) }

// Map notes that an object is loaded. Objects that it overlaps are no longer there:
// their unloading was not told. An object that is told again stays what it is.
//
// The error is ErrTooManyObjects, or says that the object can't lie there.
func (o *Objects) Map(m Mapping) error {
	if m.Base+m.Size < m.Base {
		return fmt.Errorf("object %.100q: expected it to end below 2^64, got base 0x%x and size 0x%x", m.Path, m.Base, m.Size)
	}
	if len(m.BuildID) > maxBuildIDBytes {
		return fmt.Errorf("object %.100q: expected a build ID of at most %d bytes, got %d", m.Path, maxBuildIDBytes, len(m.BuildID))
	}
	begin, end := o.overlapped(m.Base, m.Size)
	if end == begin+1 && o.loaded[begin].is(m) {
		return nil
	}
	if len(o.loaded)-(end-begin) >= o.most {
		return fmt.Errorf("object %.100q: %w: expected at most %d", m.Path, ErrTooManyObjects, o.most)
	}
	o.loaded = slices.Replace(o.loaded, begin, end, &object{
		base: m.Base, size: m.Size,
		identity: identity{
			path:       cleanPath(m.Path),
			buildID:    string(m.BuildID),
			debugLink:  printable(m.DebugLink),
			memorySize: m.Size,
		},
		buildIDFollows: m.BuildIDFollows && len(m.BuildID) == 0,
	})
	return nil
}

// is reports whether m tells of this object again. Of a build ID that follows it is
// not known yet whether it is the same: SetBuildID finds out.
func (b *object) is(m Mapping) bool {
	if b.base != m.Base || b.size != m.Size || b.identity.path != cleanPath(m.Path) {
		return false
	}
	if m.BuildIDFollows && len(m.BuildID) == 0 {
		return b.buildIDFollows || b.identity.buildID != ""
	}
	return !b.buildIDFollows && b.identity.buildID == string(m.BuildID)
}

// MaxPathBytes is how long the path of an object may be, PATH_MAX of Linux; longer ones are
// cut.
const MaxPathBytes = 4096

// cleanPath is a told path as names show it.
func cleanPath(told string) string {
	if len(told) > MaxPathBytes {
		told = strings.Clone(told[:MaxPathBytes]) // the rest is not kept
	}
	told = strings.ToValidUTF8(told, "?")
	switch {
	case told == "":
		return "[unnamed]"
	case path.IsAbs(told):
		return path.Clean(told)
	}
	return strings.Clone(told)
}

// overlapped returns which objects lie in size bytes from base, or at base.
func (o *Objects) overlapped(base, size uint64) (begin, end int) {
	begin, end = o.after(base), o.after(base+max(size, 1)-1)
	if begin > 0 && base-o.loaded[begin-1].base < max(o.loaded[begin-1].size, 1) {
		begin--
	}
	return begin, end
}

// after returns the index of the first object whose base is greater than addr.
func (o *Objects) after(addr uint64) int {
	low, high := 0, len(o.loaded)
	for low < high {
		middle := int(uint(low+high) / 2)
		if o.loaded[middle].base <= addr {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// Unmap notes that the object at base is no longer loaded, and reports whether
// there was one.
func (o *Objects) Unmap(base uint64) bool {
	b, i := o.at(base)
	if b == nil {
		return false
	}
	o.loaded = slices.Delete(o.loaded, i, i+1)
	return true
}

// at returns the object whose base that is, and its index; nil: there is none.
func (o *Objects) at(base uint64) (*object, int) {
	i := o.after(base) - 1
	if i < 0 || o.loaded[i].base != base {
		return nil, 0
	}
	return o.loaded[i], i
}

// SetBuildID tells the build ID of the object at base. The error says that no
// object lies there, or that the ID is none.
func (o *Objects) SetBuildID(base uint64, id []byte) error {
	b, _ := o.at(base)
	switch {
	case b == nil:
		return fmt.Errorf("build ID %x: expected an object at 0x%x, got none", id[:min(len(id), maxBuildIDBytes)], base)
	case len(id) < 1 || len(id) > maxBuildIDBytes:
		return fmt.Errorf("object %.100q: expected a build ID of 1 to %d bytes, got %d", b.identity.path, maxBuildIDBytes, len(id))
	case !b.buildIDFollows && bytes.Equal([]byte(b.identity.buildID), id):
		return nil
	}
	b.identity.buildID = string(id)
	b.buildIDFollows = false
	b.source, b.key = notAsked, tableKey{}
	return nil
}

// SetDebugLink tells the name of the file with debug information of the object at
// base. It has to be told before names of the object are asked for: later it changes
// nothing. The error says that no object lies there.
func (o *Objects) SetDebugLink(base uint64, name string) error {
	b, _ := o.at(base)
	if b == nil {
		return fmt.Errorf("debug link %.100q: expected an object at 0x%x, got none", name, base)
	}
	if b.source == notAsked {
		b.identity.debugLink = printable(name)
	}
	return nil
}

// find returns the object that covers an address; nil: none does.
func (o *Objects) find(addr uint64) *object {
	i := o.after(addr) - 1
	if i < 0 || addr-o.loaded[i].base >= o.loaded[i].size {
		return nil
	}
	return o.loaded[i]
}

// Lookup returns the path of the object that covers an address and the address's
// offset from its base, and reports whether one does. It allocates nothing.
func (o *Objects) Lookup(addr uint64) (object string, offset uint64, ok bool) {
	b := o.find(addr)
	if b == nil {
		return "", 0, false
	}
	return b.identity.path, addr - b.base, true
}
