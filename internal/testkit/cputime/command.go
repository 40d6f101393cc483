// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package cputime

import (
	"os/exec"
	"testing"
	"time"
)

// Command is Events for another program that handles a number of events in each run. It counts the program's processor
// time in user and system mode.
func Command(b *testing.B, events int, command func() *exec.Cmd) {
	b.Helper()
	var used time.Duration
	for b.Loop() {
		c := command()
		if err := c.Run(); err != nil {
			b.Fatalf("%s: %v", c, err)
		}
		used += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	report(b, events, used)
}
