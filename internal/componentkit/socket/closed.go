// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"errors"
	"io"
	"syscall"
)

// IsClosed reports whether the error of a connection means that its peer has closed it.
func IsClosed(err error) bool {
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
