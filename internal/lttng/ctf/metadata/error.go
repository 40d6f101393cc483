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
