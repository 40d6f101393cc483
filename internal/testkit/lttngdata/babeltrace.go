// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngdata

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// RequireBabeltrace skips the test without babeltrace2, or fails it if CALLBRAID_REQUIRE_PEERS is set.
func RequireBabeltrace(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("babeltrace2"); err != nil {
		const remedy = "install babeltrace2 (Debian: apt-get install babeltrace2)"
		if os.Getenv("CALLBRAID_REQUIRE_PEERS") != "" {
			t.Fatalf("expected babeltrace2 in PATH, since CALLBRAID_REQUIRE_PEERS is set; %s", remedy)
		}
		t.Skipf("no babeltrace2 in PATH: %s", remedy)
	}
}

// Babeltrace runs babeltrace2, for a limited time, and returns its output and its warnings. Without babeltrace2 the
// test is skipped.
func Babeltrace(t testing.TB, arguments ...string) (text, warnings string) {
	t.Helper()
	RequireBabeltrace(t)
	// The limit is far below that of go test, which reports no reason when it kills all processes.
	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "babeltrace2", arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// BenchmarkBabeltrace measures the processor time of babeltrace2, which reads this number of events. Its output is
// discarded. Without babeltrace2 the benchmark is skipped.
func BenchmarkBabeltrace(b *testing.B, events int, arguments ...string) {
	b.Helper()
	RequireBabeltrace(b)
	cputime.Command(b, events, func() *exec.Cmd {
		command := exec.CommandContext(b.Context(), "babeltrace2", arguments...)
		command.Stdout = io.Discard
		return command
	})
}
