// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import "fmt"

// ProtocolError says where bytes stand that the protocol, or a bound of the reader,
// does not allow there.
type ProtocolError struct {
	Offset   int    // of the wrong field, from the start of the request or reply
	Expected string // what is allowed there
	Got      string // what stands there
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}
