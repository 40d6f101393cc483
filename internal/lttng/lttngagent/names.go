// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// splitNames returns the n names in b, each followed by a NUL. offset is the offset of b in the message.
func splitNames(b []byte, n, offset int) ([]string, error) {
	if got := bytes.Count(b, []byte{0}); got != n {
		return nil, &ProtocolError{offset, fmt.Sprintf("%d names, each with a NUL, in %d bytes", n, len(b)), fmt.Sprintf("%d NULs", got)}
	}
	if n == 0 && len(b) == 0 {
		return nil, nil
	}
	if b[len(b)-1] != 0 {
		return nil, &ProtocolError{offset + len(b) - 1, "a NUL at the end of the last name", fmt.Sprintf("%#02x", b[len(b)-1])}
	}
	names, rest := make([]string, 0, n), string(b)
	for range n {
		name, after, _ := strings.Cut(rest, "\x00")
		if !utf8.ValidString(name) {
			return nil, &ProtocolError{offset + len(b) - len(rest), "a name in UTF-8", fmt.Sprintf("%.100q", name)}
		}
		names, rest = append(names, name), after
	}
	return names, nil
}
