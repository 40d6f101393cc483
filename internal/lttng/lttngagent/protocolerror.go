// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import "fmt"

// ProtocolError says where bytes stand that the protocol, or a bound of the reader,
// does not allow there.
type ProtocolError struct {
	Offset   int    // of the wrong field, from the start of the message
	Expected string // what is allowed there
	Got      string // what stands there
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

// TooLargeError: a list is larger than the limits allow. The connection is of use where
// what is left of the list is skipped.
type TooLargeError struct {
	ProtocolError
	Rest int // bytes of the reply that were not read, up to 2 GiB
}

func (e *TooLargeError) Unwrap() error { return &e.ProtocolError }
