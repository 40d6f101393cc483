// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package profile makes the profiles of a Ruby process: CPU samples, and snapshots of allocations. It
// owns the open profiles and their dictionaries, and delivers finished ones.
package profile

import (
	"encoding/binary"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/componentkit/profiletables"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
)

// Attributes of profiles.
const (
	attributeThreadID  = "thread.id"
	attributeFrameType = "profile.frame.type"

	frameRuby   = "ruby"
	frameNative = "native"
)

// cFile is the file of methods written in C, as servers send it.
const cFile = "<cfunc>"

// noMethod is the name of frames outside of methods.
const noMethod = "(no method)"

// dictionary writes the tables that profiles share (opentelemetry-proto, message
// ProfilesDictionary). Each entry stands once. The first entry of each table is empty and stands
// for none.
type dictionary struct {
	tables     pprofile.ProfilesDictionary
	strings    map[string]int32
	functions  map[functionKey]int32
	locations  map[locationKey]int32
	stacks     map[string]int32
	attributes map[attributeKey]int32
	// frames are the indexes of known frames by the bytes of a message.
	frames map[string]frameIndexes
	// bytes is the approximate memory of the tables.
	bytes int
	// work counts look-ups: one for each entry, for each byte of its texts, and for each location
	// of a stack.
	work int
	// key is the key of the current stack. Its memory is reused.
	key []byte
}

// frameIndexes are the function and the location of a frame.
type frameIndexes struct{ function, location int32 }

type functionKey struct {
	name, system, file int32
	line               int64
}

type locationKey struct {
	function int32
	line     int64
	native   bool
}

// attributeKey is an attribute with a text or a number.
type attributeKey struct {
	key    string
	text   string
	n      int64
	isText bool
}

func textAttribute(key, text string) attributeKey {
	return attributeKey{key: key, text: text, isText: true}
}

func numberAttribute(key string, n int64) attributeKey { return attributeKey{key: key, n: n} }

// The approximate memory of entries of the tables.
const (
	bytesOfString    = 32
	bytesOfFunction  = 96
	bytesOfLocation  = 160
	bytesOfStack     = 96
	bytesOfAttribute = 128
)

func newDictionary(tables pprofile.ProfilesDictionary) *dictionary {
	profiletables.Begin(tables)
	return &dictionary{
		tables: tables, strings: map[string]int32{"": 0}, functions: map[functionKey]int32{},
		locations: map[locationKey]int32{}, stacks: map[string]int32{"": 0}, attributes: map[attributeKey]int32{},
		frames: map[string]frameIndexes{},
	}
}

// text returns the index of a text, which is bytes of a message.
func (d *dictionary) text(b []byte) int32 {
	d.work += 1 + len(b)
	if i, ok := d.strings[string(b)]; ok {
		return i
	}
	return d.string(names.ValidText(b))
}

func (d *dictionary) string(s string) int32 {
	d.work += 1 + len(s)
	if i, ok := d.strings[s]; ok {
		return i
	}
	i := int32(d.tables.StringTable().Len())
	d.tables.StringTable().Append(s)
	d.strings[s] = i
	d.bytes += bytesOfString + len(s)
	return i
}

// maxFrameKey bounds the bytes of a frame that is cached.
const maxFrameKey = 1024

// frame returns the indexes of a frame: a method without its running line, which is unknown.
func (d *dictionary) frame(f *rbkit.Frame) frameIndexes {
	d.work += 1 + len(f.Encoded)
	if known, ok := d.frames[string(f.Encoded)]; ok {
		return known
	}
	function, native := d.method(f)
	made := frameIndexes{function: function, location: d.location(locationKey{function: function, native: native})}
	if f.Encoded != nil && len(f.Encoded) <= maxFrameKey {
		d.frames[string(f.Encoded)] = made
		d.bytes += bytesOfString + len(f.Encoded)
	}
	return made
}

// method returns the index of a frame's function. Servers send the first line of a method,
// which is the line of the function. Methods in C have neither line nor file.
func (d *dictionary) method(f *rbkit.Frame) (function int32, native bool) {
	native = string(f.File) == cFile
	name := f.Label
	if len(name) == 0 {
		name = f.Method
	}
	// A method of a single object is named after the object, which may have an address.
	key := functionKey{name: d.text(names.WithoutAddresses(name)), system: d.text(f.Method)}
	if len(name) == 0 {
		key.name = d.string(noMethod)
	}
	if !native {
		key.file, key.line = d.text(f.File), int64(min(f.Line, names.MaxLine))
	}
	return d.function(key), native
}

func (d *dictionary) function(key functionKey) int32 {
	d.work++
	if i, ok := d.functions[key]; ok {
		return i
	}
	i := int32(d.tables.FunctionTable().Len())
	f := d.tables.FunctionTable().AppendEmpty()
	f.SetNameStrindex(key.name)
	f.SetSystemNameStrindex(key.system)
	f.SetFilenameStrindex(key.file)
	f.SetStartLine(key.line)
	d.functions[key] = i
	d.bytes += bytesOfFunction
	return i
}

// location returns the index of a place in a function. Line 0 is an unknown line.
func (d *dictionary) location(key locationKey) int32 {
	d.work++
	if i, ok := d.locations[key]; ok {
		return i
	}
	kind := frameRuby
	if key.native {
		kind = frameNative
	}
	attribute := d.attribute(textAttribute(attributeFrameType, kind))
	i := int32(d.tables.LocationTable().Len())
	l := d.tables.LocationTable().AppendEmpty()
	line := l.Lines().AppendEmpty()
	line.SetFunctionIndex(key.function)
	line.SetLine(key.line)
	l.AttributeIndices().Append(attribute)
	d.locations[key] = i
	d.bytes += bytesOfLocation
	return i
}

// stack returns the index of a stack of locations, the leaf first.
func (d *dictionary) stack(locations []int32) int32 {
	d.work += 1 + len(locations)
	d.key = d.key[:0]
	for _, l := range locations {
		d.key = binary.LittleEndian.AppendUint32(d.key, uint32(l))
	}
	if i, ok := d.stacks[string(d.key)]; ok {
		return i
	}
	i := int32(d.tables.StackTable().Len())
	d.tables.StackTable().AppendEmpty().LocationIndices().FromRaw(locations)
	d.stacks[string(d.key)] = i
	d.bytes += bytesOfStack + 2*len(d.key)
	return i
}

// attribute returns the index of an attribute.
func (d *dictionary) attribute(key attributeKey) int32 {
	d.work += 1 + len(key.text)
	if i, ok := d.attributes[key]; ok {
		return i
	}
	name := d.string(key.key)
	i := int32(d.tables.AttributeTable().Len())
	a := d.tables.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(name)
	if key.isText {
		a.Value().SetStr(key.text)
	} else {
		a.Value().SetInt(key.n)
	}
	d.attributes[key] = i
	d.bytes += bytesOfAttribute + len(key.text)
	return i
}

// setValueType sets the type and the unit of values.
func (d *dictionary) setValueType(of pprofile.ValueType, kind, unit string) {
	of.SetTypeStrindex(d.string(kind))
	of.SetUnitStrindex(d.string(unit))
}

// Settings are the settings of the profiles of one process.
type Settings struct {
	Kit *receiverkit.Kit
	// Interval is the length of a profile of CPU samples.
	Interval time.Duration
	// MaxFrames bounds the frames of a stack, and MaxStacks the stacks of a profile.
	MaxFrames, MaxStacks int
	// MaxBytes bounds the approximate memory of the profiles of one snapshot.
	MaxBytes int
	// Deliver receives finished profiles; nil: no pipeline accepts profiles.
	Deliver func(Parcel)
}

// newProfiles returns empty profiles of a process, with a dictionary.
func (s *Settings) newProfiles(resource pcommon.Resource) (Parcel, pprofile.ProfilesSlice, *dictionary) {
	p := Parcel{Profiles: pprofile.NewProfiles()}
	return p, s.Kit.AppendProfiles(p.Profiles, resource), newDictionary(p.Profiles.Dictionary())
}

// Parcel is profiles of one process for the queue.
type Parcel struct {
	Profiles pprofile.Profiles
	Samples  int
	Bytes    int
}
