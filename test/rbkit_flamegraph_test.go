// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// config/rbkit-profiles.yaml as it is shipped, and servers that agentsim plays.

// flameGraphsOfRbkit starts the shipped configuration for a server, and returns the address of the
// pages.
func flameGraphsOfRbkit(t *testing.T, server rbkitServer) (c *kit.Collector, site string) {
	t.Helper()
	pages := testkit.Address(t)
	return kit.Start(t, shipped(t, "rbkit-profiles.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:4040": pages, "endpoint: localhost:8889": server.metrics,
		"publish: localhost:5555": server.publish, "request: localhost:5556": server.request,
		"path: ${env:CALLBRAID_DATA:-./callbraid-data}/rbkit/logs.json": "${env:DIR}/logs.json",
	})), "http://" + pages
}

// fetch returns the body at an address.
func fetch(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	require.NoError(t, err)
	defer response.Body.Close() // read only
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %.300s", address, text)
	return string(text)
}

// fetchAny returns the body at an address, with any status.
func fetchAny(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	require.NoError(t, err)
	defer response.Body.Close() // read only
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// decodedStacks are the samples of messages by their stacks, as folded stacks have them:
// from the outermost function on.
func decodedStacks(t *testing.T, messages []capture.Message, eventType uint64) map[string]int64 {
	t.Helper()
	stacks := map[string]int64{}
	for _, m := range with(eventType, messages) {
		if m.Decoded == nil {
			continue
		}
		eachDecoded(t, m, eventType, func(frames []decodedFrame) {
			var stack []string
			for _, f := range frames {
				name := address.ReplaceAllString(f.Label, "")
				stack = append([]string{strings.ReplaceAll(name, " ", "_")}, stack...)
			}
			stacks[strings.Join(stack, ";")]++
		})
	}
	return stacks
}

// foldedStacks are those of a download.
func foldedStacks(t *testing.T, text string) (stacks map[string]int64, all int64) {
	t.Helper()
	stacks = map[string]int64{}
	for line := range strings.Lines(text) {
		at := strings.LastIndexByte(line, ' ')
		require.Positive(t, at, line)
		n, err := strconv.ParseInt(strings.TrimSpace(line[at:]), 10, 64)
		require.NoError(t, err)
		stacks[line[:at]] += n
		all += n
	}
	return stacks, all
}

// topOfStacks are the functions of stacks with pprof's values.
func topOfStacks(stacks map[string]int64) map[string]flatCum {
	flat, cum := map[string]int64{}, map[string]int64{}
	for stack, n := range stacks {
		names := strings.Split(stack, ";")
		flat[names[len(names)-1]] += n
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			cum[name] += n
		}
	}
	top := map[string]flatCum{}
	for name, n := range cum {
		top[name] = flatCum{fmt.Sprint(flat[name]), fmt.Sprint(n)}
	}
	return top
}

// flameGraphOf matches the link to the flame graph of samples, on the page of all services.
var flameGraphOf = regexp.MustCompile(`href="(services/[^"]+/profiles/samples/count/)ui/flamegraph"`)

func TestFlameGraphsShowTheFramesOfRubyPrograms(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sample uint64
		// undecoded is how many samples are in messages that the reference hasn't decoded.
		undecoded int64
		// tree is another existing tree: allocations; empty: none.
		tree, frame string
	}{
		"released-30s":   {sample: 9, undecoded: 5},
		"documented-30s": {sample: 8, tree: "profiles/alloc_space/bytes/profile.folded", frame: "rbkit/rbkit_gc.rb:33;Hash "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, played := newRbkitServer(t), openRbkit(t, name)
			c, site := flameGraphsOfRbkit(t, server)
			server.play(t, "replay", rbkitCapture(name))
			_, byType := eventsOf(played.Messages...)
			var profile string
			testkit.Eventually(t, "all samples are folded", func() (bool, string) {
				link := flameGraphOf.FindStringSubmatch(fetch(t, site))
				if link == nil {
					return false, "no link to them"
				}
				profile = site + "/" + link[1]
				_, all := foldedStacks(t, fetch(t, profile+"profile.folded"))
				return float64(all) == byType[test.sample], fmt.Sprint(all)
			})

			want := decodedStacks(t, played.Messages, test.sample)
			require.NotEmpty(t, want)
			got, rest := foldedStacks(t, fetch(t, profile+"profile.folded"))
			for stack, n := range want {
				assert.GreaterOrEqual(t, got[stack], n, stack)
				rest -= n
			}
			assert.Equal(t, test.undecoded, rest, "samples that the reference doesn't have")

			page := fetch(t, profile+"ui/flamegraph")
			for _, frame := range []string{`"Outer::Widget.build"`, `"block in <main>"`, `prog.rb`} {
				assert.Contains(t, page, strings.ReplaceAll(strings.ReplaceAll(frame, "<", `\u003c`), ">", `\u003e`))
			}
			top := map[string]flatCum{}
			for name, values := range topOf(t, profile+"profile.pb.gz", "samples") {
				top[strings.ReplaceAll(name, " ", "_")] = values
			}
			assert.Equal(t, topOfStacks(got), top)
			service, err := url.JoinPath(profile, "../../..")
			require.NoError(t, err)
			if test.tree != "" {
				assert.Contains(t, fetch(t, service+"/"+test.tree), test.frame)
			}
			assert.NotContains(t, fetchAny(t, service+"/profile.folded"), "phase", "phases of garbage collections are not added up as if they were pauses")
			c.Stop(t)
		})
	}
}
