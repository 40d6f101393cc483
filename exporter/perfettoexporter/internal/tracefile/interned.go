// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	maxNameBytes  = 1 << 10
	maxValueBytes = 16 << 10
	// maxInternedBytes is the length of values above which they are not interned, as they are rarely repeated.
	maxInternedBytes = 256
)

// cut returns at most so many bytes of a string. Senders choose the lengths of all texts, so the exporter keeps only texts
// that were cut. A shortened one is a copy.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const ellipsis = "…"
	n := most - len(ellipsis)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}

// text returns a string as valid UTF-8 that was cut at so many bytes.
func text(s string, most int) string {
	s = cut(s, most)
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

// interned are the strings of one field of InternedData. Numbers begin at 1.
type interned struct {
	field protowire.Number
	most  int
	ids   map[string]uint64
	// recent has some of them, by their last bytes, because most look-ups are for the same few strings.
	recent [1 << recentBits]internedString
}

type internedString struct {
	s  string
	id uint64
}

// recentBits is the number of bits that number the recent strings.
const recentBits = 9

// placeOf returns where a string is among the recent ones.
func placeOf(s string) uint64 {
	const spread = 0x9e3779b97f4a7c15 // an odd number with about as many ones as zeros
	tail := uint64(0)
	for _, c := range []byte(s[max(0, len(s)-8):]) {
		tail = tail<<8 | uint64(c)
	}
	return tail * spread >> (64 - recentBits)
}

// clear forgets all strings.
func (in *interned) clear() {
	clear(in.ids)
	clear(in.recent[:])
}

// id returns the number of a string in the chunk, and appends its definition to the chunk's interned data if it is new.
func (in *interned) id(data *[]byte, s string) uint64 {
	if len(s) > in.most {
		s = cut(s, in.most)
	}
	recent := &in.recent[placeOf(s)]
	if recent.id == 0 || recent.s != s {
		*recent = internedString{s, in.lookUp(data, s)}
	}
	return recent.id
}

func (in *interned) lookUp(data *[]byte, s string) uint64 {
	if id, ok := in.ids[s]; ok {
		return id
	}
	id := uint64(len(in.ids) + 1)
	in.ids[s] = id
	b, entry := begin(*data, in.field)
	b = appendUint(b, fieldIID, id)
	*data = entry.end(appendString(b, fieldText, text(s, in.most)))
	return id
}

// Location is where a function is defined. Parts may be empty or 0.
type Location struct {
	Function, File string
	Line           int64
}

// cut returns the location with names of at most maxNameBytes.
func (l Location) cut() Location {
	l.Function, l.File = cut(l.Function, maxNameBytes), cut(l.File, maxNameBytes)
	return l
}

// locationID is a location with its number.
type locationID struct {
	Location
	id uint64
}

// locations are the interned locations of a chunk.
type locations map[Location]uint64

func (in locations) id(data *[]byte, l Location) uint64 {
	if id, ok := in[l]; ok {
		return id
	}
	id := uint64(len(in) + 1)
	in[l] = id
	b, entry := begin(*data, fieldSourceLocations)
	b = appendUint(b, fieldIID, id)
	if l.File != "" {
		b = appendString(b, fieldFileName, text(l.File, maxNameBytes))
	}
	if l.Function != "" {
		b = appendString(b, fieldFunctionName, text(l.Function, maxNameBytes))
	}
	if l.Line > 0 {
		b = appendUint(b, fieldLineNumber, uint64(l.Line))
	}
	*data = entry.end(b)
	return id
}
