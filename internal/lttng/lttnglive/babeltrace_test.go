// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// babeltrace returns the text output of babeltrace2 for a session of the relay daemon at the address.
func babeltrace(t *testing.T, address string, s lttnglive.Session) string {
	t.Helper()
	const requirePeers = "CALLBRAID_REQUIRE_PEERS"
	const remedy = "install it (Debian: apt-get install babeltrace2)"
	if _, err := exec.LookPath("babeltrace2"); err != nil {
		if os.Getenv(requirePeers) != "" {
			t.Fatalf("expected babeltrace2 in PATH, since %s is set; %s", requirePeers, remedy)
		}
		t.Skipf("no babeltrace2 in PATH: %s", remedy)
	}
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	// The limit is far below that of go test, which reports no reason when it kills all processes.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := fmt.Sprintf("net://%s:%s/host/%s/%s", host, port, s.Host, s.Name)
	cmd := exec.CommandContext(ctx, "babeltrace2",
		"--clock-gmt", "--no-delta", "--names=all", "--fields=trace:hostname,trace:domain,loglevel", // like the captures' texts
		"--component=source.ctf.lttng-live",
		// Without this action it waits for a session of the same name after the end of this one.
		"--params=inputs=[\""+url+"\"],session-not-found-action=\"end\"")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("babeltrace2 %s: %v\n%s", url, err, stderr.String())
	}
	return stdout.String()
}

// captureText returns a text file of a capture.
func captureText(t *testing.T, name, file string) string {
	t.Helper()
	archive, err := zip.OpenReader("../../../testdata/lttng/live/" + name + ".zip")
	require.NoError(t, err)
	defer archive.Close()
	i := slices.IndexFunc(archive.File, func(f *zip.File) bool { return path.Base(f.Name) == file })
	require.GreaterOrEqual(t, i, 0, file)
	f, err := archive.File[i].Open()
	require.NoError(t, err)
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	return string(text)
}

// comparableText removes two strings from a line. They are empty in some events of the captures' program tpdemo, and
// in place of an empty string babeltrace2 2.0.4 prints old content of its memory.
func comparableText(line string) string { return sometimesEmpty.ReplaceAllString(line, "$1") }

var sometimesEmpty = regexp.MustCompile(`( (?:str|seqtext) = )"(?:[^"\\]|\\.)*"`)

// babeltrace2 reads the same data from a Relay that replays a capture as from the real relay daemon: with all data
// available, and in ten times the original speed.
func TestBabeltraceReadsAReplayLikeTheRealRelay(t *testing.T) {
	for _, name := range captureNames {
		for speed, clock := range map[string]func() time.Duration{"full speed": nil, "ten times the speed": tenfold(time.Now())} {
			t.Run(name+" at "+speed, func(t *testing.T) {
				t.Parallel()
				relay, recordings := relayOf(t, name, lttnglive.RelayOptions{Clock: clock})
				want := strings.Split(captureText(t, name, "babeltrace2-live.txt"), "\n")
				got := strings.Split(babeltrace(t, listen(t, relay), recordings[0].Session), "\n")
				for i := range min(len(want), len(got)) {
					require.Equal(t, comparableText(want[i]), comparableText(got[i]), "line %d", i+1)
				}
				assert.Equal(t, len(want), len(got), "lines")
			})
		}
	}
}

func tenfold(begin time.Time) func() time.Duration {
	return func() time.Duration { return 10 * time.Since(begin) }
}
