// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"testing"
	"time"
)

// Patience is how long a condition is waited for that is certain to come. It is
// long because it costs only a test that fails, and a busy machine is slow.
const Patience = 2 * time.Minute

// interval between two looks at a condition of another process.
const interval = 10 * time.Millisecond

// Eventually waits until met is true, and fails the test after Patience with
// what met said last.
func Eventually(t testing.TB, what string, met func() (ok bool, got string)) {
	t.Helper()
	EventuallyWithin(t, Patience, what, met)
}

// EventuallyWithin is Eventually with another patience.
func EventuallyWithin(t testing.TB, patience time.Duration, what string, met func() (ok bool, got string)) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		ok, got := met()
		if ok {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("expected within %v: %s; got: %s", patience, what, got)
		case <-look.C:
		}
	}
}
