// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import "fmt"

// ProtocolError describes bytes that violate the protocol, or a bound of the reader.
type ProtocolError struct {
	Offset   int    // of the wrong field, from the start of the message
	Expected string // the allowed values
	Got      string // the received value
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

// TooLargeError means that a list exceeds the limits. The connection stays usable if the caller skips the rest of the
// list.
type TooLargeError struct {
	ProtocolError
	Rest int // bytes of the reply that were not read, up to 2 GiB
}

func (e *TooLargeError) Unwrap() error { return &e.ProtocolError }
