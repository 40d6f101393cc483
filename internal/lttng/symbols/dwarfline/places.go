// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Limits bound the reading of one file.
type Limits struct {
	// MaxBytes bounds the bytes of line tables and their texts, after decompression. Texts that are kept, and work
	// that no byte shows, count as more.
	MaxBytes int64
}

const (
	// maxProgramBytes is the maximum size of one program, and of another section that is in memory completely.
	maxProgramBytes = 64 << 20
	// searchCost is the number of bytes that the search for an address counts as, and keptCost that for a byte of a
	// path that is kept.
	searchCost = 16
	keptCost   = 4
)

// Places are the places of functions.
type Places struct {
	// Of has the place of each start, or zeros.
	Of []Place
	// Files are the paths of source files. A Place has the index plus 1.
	Files []string
}

// Place is the place at which a function begins.
type Place struct{ File, Line uint32 }

// reader reads the places of one file.
type reader struct {
	sections Sections
	budget   budget
	starts   []uint64
	places   []Place

	paths       []string
	pathNumbers map[string]uint32
	str         texts
	lineStr     texts
	// directories is nil before they are needed.
	directories directories
	// directoriesErr is the reason why some are missing.
	directoriesErr error
}

// Read returns the places of functions with these addresses in the file, which are sorted. The error is that of the
// first unreadable part: there are places of the others beside it.
func Read(s Sections, starts []uint64, limits Limits) (Places, error) {
	r := &reader{
		sections: s, budget: budget{limits.MaxBytes, limits.MaxBytes}, starts: starts, places: make([]Place, len(starts)),
		pathNumbers: map[string]uint32{}, str: texts{section: s.Str}, lineStr: texts{section: s.LineStr},
	}
	err := errors.Join(r.readPrograms(), r.directoriesErr)
	return Places{Of: r.places, Files: r.paths}, err
}

// readPrograms reads all programs of .debug_line, one after the other.
func (r *reader) readPrograms() error {
	const buffer = 64 << 10
	u := newUnits(r.sections.Line, buffer)
	var content bytes.Buffer
	var firstErr error
	for u.at < r.sections.Line.Size {
		begin := u.at
		header, err := u.reader.Peek(int(min(maxLengthBytes, r.sections.Line.Size-u.at)))
		c := cursor{data: header, order: r.sections.Order}
		length := c.unitLength()
		left := r.sections.Line.Size - u.at - int64(c.at)
		if c.failed && err != nil {
			return errors.Join(firstErr, fmt.Errorf("line table at byte %d: %w", begin, err))
		}
		if c.failed || length > uint64(left) {
			return errors.Join(firstErr, fmt.Errorf("line table at byte %d: expected at most %d bytes, got %d", begin, max(left, 0), length))
		}
		content.Reset()
		if length > maxProgramBytes {
			return errors.Join(firstErr, fmt.Errorf("%w: line table at byte %d: expected at most %d bytes, got %d", ErrLimit, begin, maxProgramBytes, length))
		}
		if err := errors.Join(r.budget.spend(int64(length)+1), u.skipTo(u.at+int64(c.at), &r.budget)); err != nil {
			return errors.Join(firstErr, err)
		}
		if _, err := io.CopyN(&content, u.reader, int64(length)); err != nil {
			return errors.Join(firstErr, err)
		}
		u.at += int64(length)
		p := program{cursor: cursor{data: content.Bytes(), order: c.order, is64: c.is64}, begin: uint64(begin)}
		if err = p.readHeader(); err == nil {
			err = p.run(r)
		}
		if errors.Is(err, ErrLimit) {
			return errors.Join(firstErr, err)
		}
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("line table at byte %d: %w", begin, err)
		}
	}
	return firstErr
}

// maxLengthBytes is the size of a unit's length in the 64-bit format.
const maxLengthBytes = 12

// search returns the index of the first start that is not below an address, and whether it is that address.
func (r *reader) search(address uint64) (int, bool) { return slices.BinarySearch(r.starts, address) }

// textOf returns a text of a program, or "" if it is unknown.
func (r *reader) textOf(t text) (string, error) {
	var content []byte
	var err error
	switch t.form {
	case formString:
		content = t.inline[:min(len(t.inline), maxTextBytes)]
	case formStrp:
		content, err = r.str.text(t.offset, &r.budget)
	case formLineStrp:
		content, err = r.lineStr.text(t.offset, &r.budget)
	}
	return string(content), err
}

// compilationDirectory returns the directory of the unit with this line program, or "" if it is unknown.
func (r *reader) compilationDirectory(program uint64) (string, error) {
	if r.directories == nil {
		r.directories, r.directoriesErr = readDirectories(&r.sections, &r.str, &r.lineStr, &r.budget)
	}
	return r.directories[program], nil
}

// pathNumber returns the number of a path, at least 1, or 0 if the path is too long.
func (r *reader) pathNumber(path string) (uint32, error) {
	if path = strings.ToValidUTF8(path, "?"); len(path) > maxTextBytes {
		return 0, nil
	}
	number := r.pathNumbers[path]
	if number == 0 {
		if err := r.budget.spend(keptCost * int64(len(path))); err != nil {
			return 0, err
		}
		r.paths = append(r.paths, path)
		number = uint32(len(r.paths))
		r.pathNumbers[path] = number
	}
	return number, nil
}
