// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import (
	"math"
	"slices"
	"strings"
)

// pathBytes is the approximate memory of a path beside its text.
const pathBytes = 48

// Place is the place at which a function begins.
type Place struct{ File, Line uint32 }

// ambiguous is the File of a place if several sequences have different lines for the start.
const ambiguous = math.MaxUint32

// IsAmbiguous reports whether there are several places. Linkers that fold identical functions leave the rows of each.
func (p Place) IsAmbiguous() bool { return p.File == ambiguous }

// found is the result for one file while it is read, with the parts of the file that its texts are in.
type found struct {
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

// search returns the index of the first start that is not below an address, and whether it is that address.
func (f *found) search(address uint64) (int, bool) { return slices.BinarySearch(f.starts, address) }

// textRef is a text inside a program, or in a section of strings. The zero value is unknown.
type textRef struct {
	form   uint64
	inline []byte
	offset uint64
}

// textOf returns a text of a program, or "" if it is unknown.
func (f *found) textOf(t textRef) (string, error) {
	var content []byte
	var err error
	switch t.form {
	case formString:
		content = t.inline[:min(len(t.inline), maxTextBytes)]
	case formStrp:
		content, err = f.str.text(t.offset, &f.budget)
	case formLineStrp:
		content, err = f.lineStr.text(t.offset, &f.budget)
	}
	return string(content), err
}

// compilationDirectory returns the directory of the unit with this line program, or "" if it is unknown.
func (f *found) compilationDirectory(program uint64) (string, error) {
	if f.directories == nil {
		f.directories, f.directoriesErr = readDirectories(&f.sections, &f.str, &f.lineStr, &f.budget)
	}
	return f.directories[program], nil
}

// pathNumber returns the number of a path, at least 1.
func (f *found) pathNumber(path string) (uint32, error) {
	path = strings.ToValidUTF8(path, "?")
	number := f.pathNumbers[path]
	if number == 0 {
		if err := f.budget.spend(keptCost * int64(len(path))); err != nil {
			return 0, err
		}
		if err := f.budget.reserve(growth * (int64(len(path)) + pathBytes)); err != nil {
			return 0, err
		}
		f.paths = append(f.paths, path)
		number = uint32(len(f.paths))
		f.pathNumbers[path] = number
	}
	return number, nil
}
