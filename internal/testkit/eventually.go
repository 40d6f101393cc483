// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"testing"
	"time"
)

// Patience limits the wait for a condition. It is long because a busy machine is slow, and only failing tests wait so
// long.
const Patience = 2 * time.Minute

// interval is the time between two checks of a condition of another process.
const interval = 10 * time.Millisecond

// Eventually waits until met returns true. After Patience it fails the test with the last text of met.
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
