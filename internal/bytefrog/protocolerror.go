// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import "fmt"

// ProtocolError has the position of bytes that the protocol does not allow there.
type ProtocolError struct {
	Offset   int    // of the wrong byte or field, from the start of the bytes that were decoded
	Expected string // the allowed bytes
	Got      string // the actual bytes
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}
