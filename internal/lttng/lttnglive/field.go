// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"bytes"
	"fmt"
)

// appendField appends text as a field of size bytes that ends with at least one NUL. It truncates longer text.
func appendField(b []byte, text string, size int) []byte {
	end := len(b) + size
	b = append(b, text[:min(len(text), size-1)]...)
	return append(b, make([]byte, end-len(b))...)
}

// fieldText returns the text before the first NUL of a field at offset. name is the name of the field for errors.
func fieldText(field []byte, offset int, name string) (string, error) {
	end := bytes.IndexByte(field, 0)
	if end < 0 {
		return "", &ProtocolError{
			Offset:   offset,
			Expected: fmt.Sprintf("%s that ends with a NUL within %d bytes", name, len(field)),
			Got:      "none",
		}
	}
	return string(field[:end]), nil
}

// checkBound returns an error if the number n at offset exceeds limit. things is the name of the counted things.
func checkBound[N uint32 | uint64](n N, limit, offset int, things string) error {
	if uint64(n) <= uint64(limit) {
		return nil
	}
	return &ProtocolError{Offset: offset, Expected: fmt.Sprintf("at most %d %s", limit, things), Got: fmt.Sprint(n)}
}
