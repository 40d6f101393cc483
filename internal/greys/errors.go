// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

import (
	"bytes"
	"errors"
)

// ErrHTTP means that an HTTP server listens at the port.
var ErrHTTP = errors.New("an HTTP server answers, not Greys")

// IsHTTP reports whether the first received bytes are from an HTTP server: a status line, or an HTML page without one.
func IsHTTP(received []byte) bool {
	for _, begin := range []string{"HTTP/", "<html", "<!doctype"} {
		if len(received) >= len(begin) && bytes.EqualFold(received[:len(begin)], []byte(begin)) {
			return true
		}
	}
	return false
}
