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

// The time between two checks of a condition grows from minInterval to maxInterval: it is a tenth of the wait until then. A check
// may cost another process, or a browser, milliseconds of a processor.
const minInterval, maxInterval = 10 * time.Millisecond, 50 * time.Millisecond

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
	for began := time.Now(); ; {
		ok, got := met()
		if ok {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("expected within %v: %s; got: %s", patience, what, got)
		case <-time.After(min(max(time.Since(began)/10, minInterval), maxInterval)):
		}
	}
}
