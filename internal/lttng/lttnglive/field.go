// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"bytes"
	"fmt"
)

// appendField appends text as a field of size bytes that ends with at least one
// NUL. Longer text is cut.
func appendField(b []byte, text string, size int) []byte {
	end := len(b) + size
	b = append(b, text[:min(len(text), size-1)]...)
	return append(b, make([]byte, end-len(b))...)
}

// fieldText is the text in front of the first NUL of a field at offset, which holds
// what the text names.
func fieldText(field []byte, offset int, what string) (string, error) {
	end := bytes.IndexByte(field, 0)
	if end < 0 {
		return "", &ProtocolError{
			Offset:   offset,
			Expected: fmt.Sprintf("%s that ends with a NUL within %d bytes", what, len(field)),
			Got:      "none",
		}
	}
	return string(field[:end]), nil
}

// checkBound says that the number n at offset is more than limit of the named things.
func checkBound[N uint32 | uint64](n N, limit, offset int, things string) error {
	if uint64(n) <= uint64(limit) {
		return nil
	}
	return &ProtocolError{Offset: offset, Expected: fmt.Sprintf("at most %d %s", limit, things), Got: fmt.Sprint(n)}
}
