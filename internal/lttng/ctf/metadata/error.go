// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package metadata

import "fmt"

// Position is a place in the text of the metadata, with all pieces joined, without the headers of packets. Lines and
// columns count from 1. Columns are bytes. The zero Position is unknown.
type Position struct {
	Line, Column int
}

func (p Position) String() string {
	if p.Line == 0 {
		return "somewhere"
	}
	return fmt.Sprintf("line %d, column %d", p.Line, p.Column)
}

// After returns the position after text that begins at p.
func (p Position) After(text []byte) Position {
	for _, c := range text {
		if c == '\n' {
			p.Line++
			p.Column = 0
		}
		p.Column++
	}
	return p
}

// Error describes an error in metadata and its position.
type Error struct {
	Where Position
	// Path is the path to the place inside a JSON fragment. It is empty for TSDL.
	Path string
	// Expected and Got are phrases: "expected EXPECTED, got GOT".
	Expected, Got string
}

func (e *Error) Error() string {
	place := e.Where.String()
	if e.Path != "" {
		place += ", " + e.Path
	}
	return fmt.Sprintf("metadata, %s: expected %s, got %s", place, e.Expected, e.Got)
}

// Recover sets *err to the *Error of a panic. Parsers defer it: almost all of their methods can fail.
func Recover(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		panic(r)
	}
}
