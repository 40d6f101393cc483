// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// babeltrace returns the text output of babeltrace2 for a session of the relay daemon at the address.
func babeltrace(t *testing.T, address string, s lttnglive.Session) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	url := fmt.Sprintf("net://%s:%s/host/%s/%s", host, port, s.Host, s.Name)
	text, _ := lttngdata.Babeltrace(t,
		"--clock-gmt", "--no-delta", "--names=all", "--fields=trace:hostname,trace:domain,loglevel", // like the captures' texts
		"--component=source.ctf.lttng-live",
		// Without this action it waits for a session of the same name after the end of this one.
		"--params=inputs=[\""+url+"\"],session-not-found-action=\"end\"")
	return text
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
				want := strings.Split(lttngdata.CaptureText(t, name, "babeltrace2-live.txt"), "\n")
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
