// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package recordfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

var errLocked = errors.New("another writer has the lock")

// lock locks an open file until it is closed or the process ends. It returns errLocked if the file
// is locked, in this process or another one.
func lock(fd uintptr) error {
	err := unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
