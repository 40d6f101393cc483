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

// DefaultMaxObjects is the default maximum number of objects of a process. Large programs have some hundreds.
const DefaultMaxObjects = 4096

// Mapping is an object that is loaded in a process.
type Mapping struct {
	// Base is the address at which the object's first loadable segment begins. It differs from the load bias (l_addr
	// of dlopen's link_map) if the addresses in the file do not begin at 0.
	Base uint64
	// Size is the number of bytes from Base to the end of the last segment, including holes. An object of size 0
	// contains no address.
	Size uint64
	// Path is the object's file on the machine of the program. If it is not an absolute path ("[vdso]"), the object
	// has no file.
	Path string
	// BuildID is the object's build ID, empty if it has none.
	BuildID []byte
	// BuildIDFollows is set if SetBuildID will report the object's build ID. No file is opened before.
	BuildIDFollows bool
	// DebugLink is the file name of a file with debug information, without directory, or "".
	DebugLink string
	// DebugCRC is the checksum of that file, or 0. A file is used only with it or with the build ID.
	DebugCRC uint32 `json:",omitempty"`
	// Seen is the Unix time in nanoseconds at which the object was reported, or 0. If the object has no build ID, a file
	// that was written later is not used: the program may have been built again.
	Seen int64 `json:",omitempty"`
}

// ErrTooManyObjects is the error of Objects.Map if a process has the maximum number of objects.
var ErrTooManyObjects = errors.New("too many objects are loaded")

// Objects are the loaded objects in the address space of one process. One goroutine at a time may use them.
type Objects struct {
	files *Files
	most  int
	// loaded are sorted by base and do not overlap.
	loaded []*object
}

// object is a loaded object.
type object struct {
	base, size     uint64
	identity       identity
	buildIDFollows bool
	// source is the source of the object's names.
	source source
	// key is the key of the object's table if source is fromTable.
	key tableKey
}

// source is the source of an object's names. It does not change after the first lookup, so a function has the same
// name while the object is loaded.
type source uint8

const (
	notAsked source = iota
	fromTable
	fromNowhere
)

// NewObjects returns an empty address space for at most that many objects, with names from files. Without files, no
// function has a name.
func NewObjects(files *Files, most int) *Objects {
	return &Objects{files: files, most: most}
}

// Len returns the number of objects.
func (o *Objects) Len() int { return len(o.loaded) }

// Map adds a loaded object. It removes objects that overlap with it, because their unloading was not reported. A
// repeated report of the same object changes nothing.
//
// The error is ErrTooManyObjects, or a contradiction in the object's addresses.
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
			debugCRC:   m.DebugCRC,
			memorySize: m.Size,
			seen:       m.Seen,
		},
		buildIDFollows: m.BuildIDFollows && len(m.BuildID) == 0,
	})
	return nil
}

// is reports whether m describes this object again. If its build ID follows, SetBuildID compares that later.
func (b *object) is(m Mapping) bool {
	if b.base != m.Base || b.size != m.Size || b.identity.path != cleanPath(m.Path) {
		return false
	}
	if m.BuildIDFollows && len(m.BuildID) == 0 {
		return b.buildIDFollows || b.identity.buildID != ""
	}
	return !b.buildIDFollows && b.identity.buildID == string(m.BuildID)
}

// MaxPathBytes is the maximum length of an object's path, PATH_MAX of Linux. Longer paths are truncated.
const MaxPathBytes = 4096

// cleanPath returns a reported path in the form in which names contain it.
func cleanPath(reported string) string {
	if len(reported) > MaxPathBytes {
		reported = strings.Clone(reported[:MaxPathBytes]) // frees the rest
	}
	reported = strings.ToValidUTF8(reported, "?")
	switch {
	case reported == "":
		return "[unnamed]"
	case path.IsAbs(reported):
		return path.Clean(reported)
	}
	return strings.Clone(reported)
}

// overlapped returns the range of objects that overlap size bytes from base, or that contain base.
func (o *Objects) overlapped(base, size uint64) (begin, end int) {
	begin, end = o.after(base), o.after(base+max(size, 1)-1)
	if begin > 0 && base-o.loaded[begin-1].base < max(o.loaded[begin-1].size, 1) {
		begin--
	}
	return begin, end
}

// after returns the index of the first object with a base greater than addr.
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

// Unmap removes the object at base, and reports whether there was one.
func (o *Objects) Unmap(base uint64) bool {
	b, i := o.at(base)
	if b == nil {
		return false
	}
	o.loaded = slices.Delete(o.loaded, i, i+1)
	return true
}

// at returns the object with this base, and its index, or nil.
func (o *Objects) at(base uint64) (*object, int) {
	i := o.after(base) - 1
	if i < 0 || o.loaded[i].base != base {
		return nil, 0
	}
	return o.loaded[i], i
}

// SetBuildID sets the build ID of the object at base. It fails if there is no such object, or if the ID is invalid.
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

// SetDebugLink sets the name and the checksum of the file with debug information of the object at base. It has no effect after the
// first lookup in the object. It fails if there is no such object.
func (o *Objects) SetDebugLink(base uint64, name string, crc uint32) error {
	b, _ := o.at(base)
	if b == nil {
		return fmt.Errorf("debug link %.100q: expected an object at 0x%x, got none", name, base)
	}
	if b.source == notAsked {
		b.identity.debugLink, b.identity.debugCRC = printable(name), crc
	}
	return nil
}

// find returns the object that contains an address, or nil.
func (o *Objects) find(addr uint64) *object {
	i := o.after(addr) - 1
	if i < 0 || addr-o.loaded[i].base >= o.loaded[i].size {
		return nil
	}
	return o.loaded[i]
}

// Lookup returns the path of the object that contains an address and the address's offset from its base. The third
// result is false if there is none. It allocates nothing.
func (o *Objects) Lookup(addr uint64) (object string, offset uint64, ok bool) {
	b := o.find(addr)
	if b == nil {
		return "", 0, false
	}
	return b.identity.path, addr - b.base, true
}
