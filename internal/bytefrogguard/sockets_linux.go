// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogguard

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpUnacknowledged has connections end when what was sent is not acknowledged for so
// long: TCP itself tries for a quarter of an hour when the network is cut.
func giveUpUnacknowledged(after time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
		})
		if err != nil {
			return err
		}
		return failed
	}
}
