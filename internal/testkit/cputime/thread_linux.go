// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// thread returns the processor time of the caller's thread so far.
func thread() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		// It cannot fail for these arguments.
		panic(err)
	}
	return time.Duration(t.Nano())
}
