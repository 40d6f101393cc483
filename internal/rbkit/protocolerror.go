// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "fmt"

// Problem is a kind of error in a message. Its text is for a counter's attribute.
type Problem uint8

// The problems.
const (
	Truncated  Problem = 1 + iota // the message, or a list in it, ends too early
	WrongType                     // a value has another type, or is no msgpack
	WrongValue                    // a number or text is impossible at its place
	Missing                       // a required field is missing
	Trailing                      // bytes follow the message
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
	Offset   int    // of the wrong field, from the begin of the message
	Expected string // the allowed bytes
	Got      string // the received bytes
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}
