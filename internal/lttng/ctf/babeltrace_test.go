// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// babeltraceSeeds is the number of random traces that babeltrace2 reads.
const babeltraceSeeds = 100

// printedTime matches a time in the output of babeltrace2.
var printedTime = regexp.MustCompile(`(?m)^timestamp = ([0-9.]+), `)

func TestBabeltraceReadsRandomTracesAsTheyWereWritten(t *testing.T) {
	for seed := range uint64(babeltraceSeeds) {
		want := newRandomTrace(seed, true)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "metadata"), []byte(want.metadata), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stream"), want.packet, 0o600))
		printed, _ := lttngdata.Babeltrace(t, "--clock-seconds", "--no-delta", "--names=all", dir)
		var got []string
		if printed != "" {
			got = strings.Split(strings.TrimSuffix(printedTime.ReplaceAllString(printed, "$1 "), "\n"), "\n")
		}
		require.Equal(t, want.events, got, "seed %d\n%s", seed, want.metadata)
	}
}
