// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requirePeers is the environment variable that operations a missing peer into a failure.
const requirePeers = "CALLBRAID_REQUIRE_PEERS"

// babeltraceSeeds is the number of random traces that babeltrace2 reads.
const babeltraceSeeds = 100

// babeltrace2 runs babeltrace2 and returns its output. Without babeltrace2 the test is skipped.
func babeltrace2(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("babeltrace2"); err != nil {
		const remedy = "install babeltrace2 (Debian: apt-get install babeltrace2)"
		if os.Getenv(requirePeers) != "" {
			t.Fatalf("expected babeltrace2 in PATH, since %s is set; %s", requirePeers, remedy)
		}
		t.Skipf("no babeltrace2 in PATH: %s", remedy)
	}
	cmd := exec.CommandContext(t.Context(), "babeltrace2", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", &stderr)
	return stdout.String()
}

// printedTime matches a time in the output of babeltrace2.
var printedTime = regexp.MustCompile(`(?m)^timestamp = ([0-9.]+), `)

func TestBabeltraceReadsRandomTracesAsTheyWereWritten(t *testing.T) {
	for seed := range uint64(babeltraceSeeds) {
		want := newRandomTrace(seed, true)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "metadata"), []byte(want.metadata), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stream"), want.packet, 0o600))
		printed := babeltrace2(t, "--clock-seconds", "--no-delta", "--names=all", dir)
		var got []string
		if printed != "" {
			got = strings.Split(strings.TrimSuffix(printedTime.ReplaceAllString(printed, "$1 "), "\n"), "\n")
		}
		require.Equal(t, want.events, got, "seed %d\n%s", seed, want.metadata)
	}
}
