// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package linefile

import (
	"errors"

	"golang.org/x/sys/unix"
)

var errLocked = errors.New("another writer has the lock")

// lock takes the lock of an open file, until the file is closed or the process ends. It is
// errLocked where another has it, in this process or any other.
func lock(fd uintptr) error {
	err := unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
