// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"time"
	"unicode"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// failures decides which failures of a server are logged: the first of a burst, the first with another reason, and a
// lasting one.
type failures struct {
	repeatAfter time.Duration
	burst       logline.Burst
	changes     logline.Seldom
	// reason and at are those of the last log line; count is the number of failures since.
	reason string
	at     time.Time
	count  int
}

func (f *failures) over() { f.burst.Over() }

// say reports whether a failure is logged, and how many there were since the last line.
func (f *failures) say(why error, now time.Time) (since int, due bool) {
	f.count++
	reason := withoutDigits(why.Error())
	_, due = f.burst.Count(now)
	if !due && reason != f.reason && f.reason != "" {
		_, due = f.changes.Count(now)
	}
	if !due && (f.reason == "" || now.Sub(f.at) < f.repeatAfter) {
		return 0, false
	}
	since, f.count = f.count, 0
	f.reason, f.at = reason, now
	return since, true
}

// withoutDigits removes digits: port numbers, for example, differ in each text of the same error.
func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}
