// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package recordfile

import "errors"

var errLocked = errors.New("another writer has the lock")

// lock reports that this platform has no locks.
func lock(uintptr) error { return errors.ErrUnsupported }
