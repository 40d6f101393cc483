// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import "fmt"

// ProtocolError describes bytes that violate the protocol, or a bound of the reader.
type ProtocolError struct {
	Offset   int    // of the wrong field, from the start of the request or reply
	Expected string // the allowed values
	Got      string // the received value
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}
