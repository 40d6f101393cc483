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

// The pause between two checks of a condition grows from the first to the longest. If a check takes long, the pause is a multiple of
// its time, and at most mostPause. So a test that waits leaves the processors to others.
const (
	firstPause   = 500 * time.Microsecond
	longestPause = 10 * time.Millisecond
	perCheck     = 4
	mostPause    = time.Second
)

// longestWait bounds the time that counts as waited between two checks, beside the pause. A machine that stood still for longer had no
// time to fulfil the condition.
const longestWait = 10 * longestPause

// Happens reports whether a condition becomes true within Patience.
func Happens(condition func() bool) bool { return HappensWithin(Patience, condition) }

// HappensWithin is Happens with another patience.
func HappensWithin(patience time.Duration, condition func() bool) bool {
	began, pause := time.Now(), time.Duration(0)
	for next := firstPause; ; next = min(next*3/2, longestPause) {
		time.Sleep(pause)
		at := time.Now()
		if condition() {
			return true
		}
		if patience -= min(at.Sub(began), pause+longestWait); patience < 0 {
			return false
		}
		began, pause = at, max(next, min(perCheck*time.Since(at), mostPause))
	}
}

// Eventually waits until met returns true. After Patience it fails the test with the last text of met.
func Eventually(t testing.TB, what string, met func() (ok bool, got string)) {
	t.Helper()
	EventuallyWithin(t, Patience, what, met)
}

// EventuallyWithin is Eventually with another patience.
func EventuallyWithin(t testing.TB, patience time.Duration, what string, met func() (ok bool, got string)) {
	t.Helper()
	var got string
	if !HappensWithin(patience, func() (ok bool) { ok, got = met(); return ok }) {
		t.Fatalf("expected within %v: %s; got: %s", patience, what, got)
	}
}
