// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "fmt"

// Problem is a kind of mistake in a message. Its text is for a counter's attribute.
type Problem uint8

// The problems.
const (
	Truncated  Problem = 1 + iota // it ends too early; there are too few elements, too
	WrongType                     // something is of another type, or no msgpack
	WrongValue                    // a number or text is beyond what makes sense there
	Missing                       // a field that has to be there is not
	Trailing                      // something stands behind the message
)

func (p Problem) String() string {
	switch p {
	case Truncated:
		return "truncated"
	case WrongType:
		return "wrong_type"
	case WrongValue:
		return "wrong_value"
	case Missing:
		return "missing"
	case Trailing:
		return "trailing"
	default:
		return fmt.Sprintf("Problem(%d)", uint8(p))
	}
}

// ProtocolError has the position where a message breaks the protocol.
type ProtocolError struct {
	Problem  Problem
	Offset   int    // of the wrong field, from the beginning of the message
	Expected string // what is allowed there
	Got      string // what stands there
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}
