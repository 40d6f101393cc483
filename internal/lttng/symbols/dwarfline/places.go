// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits bound the reading of one file.
type Limits struct {
	// MaxBytes bounds the bytes of line tables and their texts, after decompression. Texts that are kept, and work
	// that no byte shows, count as more.
	MaxBytes int64
	// Reserve is called with the approximate number of bytes of memory, before they are used. If it fails, the reading
	// ends with its error. It may be nil.
	Reserve func(bytes int64) error
}

// Places are the places of functions.
type Places struct {
	// Of has the place of each start, zeros, or an ambiguous place.
	Of []Place
	// Files are the paths of source files. A Place has the index plus 1, unless it is ambiguous.
	Files []string
}

// Read returns the places of functions with these addresses in the file, which are sorted. The error is that of the
// first unreadable part: there are places of the others beside it.
func Read(s Sections, starts []uint64, limits Limits) (Places, error) {
	f := &found{
		sections: s, budget: budget{left: limits.MaxBytes, limit: limits.MaxBytes, room: limits.Reserve}, starts: starts, places: make([]Place, len(starts)),
		pathNumbers: map[string]uint32{}, str: texts{section: s.Str}, lineStr: texts{section: s.LineStr},
	}
	err := errors.Join(readPrograms(f), f.directoriesErr)
	return Places{Of: f.places, Files: f.paths}, err
}

// readPrograms reads all programs of .debug_line, one after the other.
func readPrograms(f *found) error {
	const buffer = 64 << 10
	u := newUnits(f.sections.Line, buffer)
	var content bytes.Buffer
	var firstErr error
	largest := uint64(0)
	for u.at < f.sections.Line.Size {
		begin := u.at
		header, err := u.reader.Peek(int(min(maxLengthBytes, f.sections.Line.Size-u.at)))
		c := cursor{data: header, order: f.sections.Order}
		length := c.unitLength()
		left := f.sections.Line.Size - u.at - int64(c.at)
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
		if length > largest {
			if err := f.budget.reserve(growth * int64(length-largest)); err != nil {
				return errors.Join(firstErr, err)
			}
			largest = length
		}
		if err := errors.Join(f.budget.spend(int64(length)+1), u.skipTo(u.at+int64(c.at), &f.budget)); err != nil {
			return errors.Join(firstErr, err)
		}
		if _, err := io.CopyN(&content, u.reader, int64(length)); err != nil {
			return errors.Join(firstErr, err)
		}
		u.at += int64(length)
		p := program{cursor: cursor{data: content.Bytes(), order: c.order, is64: c.is64}, begin: uint64(begin)}
		if err = p.readHeader(); err == nil {
			err = p.run(f)
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
