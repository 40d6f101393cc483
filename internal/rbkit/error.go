// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// Fault is what is wrong with a message.
type Fault uint8

// The faults of messages.
const (
	// FaultTruncated: the message ends inside something, or announces more than it has.
	FaultTruncated Fault = iota
	// FaultType: a value is of another type than it should be, or of none.
	FaultType
	// FaultValue: a number is one that it can't be.
	FaultValue
	// FaultLimit: there is more of something than Limits allow, or it is nested too deeply.
	FaultLimit
	// FaultMessage: it is no message of the kind that was expected.
	FaultMessage
	// FaultTrailing: bytes follow the message.
	FaultTrailing
	// FaultCount is how many faults there are.
	FaultCount
)

func (f Fault) String() string {
	return [FaultCount]string{"truncated", "type", "value", "limit", "message", "trailing"}[f]
}

// Error says where a message is not what it should be.
type Error struct {
	Fault    Fault
	Offset   int    // of the wrong byte in the message
	Expected string // what should be there
	Got      string // what is there
}

func (e *Error) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

// fail makes the error of what stands next.
func (r *reader) fail(fault Fault, expected, got string) *Error {
	return &Error{Fault: fault, Offset: r.at, Expected: expected, Got: got}
}

// wrong makes an error of one of the library's, about what stands next.
func (r *reader) wrong(expected string, err error) *Error {
	var above msgp.UintOverflow
	var aboveInt msgp.IntOverflow
	var below msgp.UintBelowZero
	switch {
	case errors.Is(err, msgp.ErrShortBytes):
		return r.fail(FaultTruncated, expected, fmt.Sprintf("the end of the message after %d bytes", len(r.rest())))
	case errors.Is(err, msgp.ErrRecursion):
		return r.fail(FaultLimit, expected, "more of each other's elements than are read")
	case errors.As(err, &above), errors.As(err, &aboveInt), errors.As(err, &below):
		return r.fail(FaultValue, expected, err.Error())
	default:
		return r.fail(FaultType, expected, r.next())
	}
}

// next says what stands next.
func (r *reader) next() string {
	if len(r.rest()) == 0 {
		return "the end of the message"
	}
	if t := msgp.NextType(r.rest()); t != msgp.InvalidType {
		return fmt.Sprintf("%s (0x%02x)", t, r.lead())
	}
	return fmt.Sprintf("0x%02x", r.lead())
}
