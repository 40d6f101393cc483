// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/recorded"
)

func TestErrorsOfSettingsNameFieldAndRemedy(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`include is empty: set it to directories of traces, or to patterns such as "/traces/**"`: func(c *Config) { c.Include = nil },
		`include[0] "": expected a path, got none: set it to`:                                    func(c *Config) { c.Include = []string{""} },
		`include[0] "~/x": expected a path without ~, which`:                                     func(c *Config) { c.Include = []string{"~/x"} },
		`exclude[1] "/a/[": "[": syntax error in pattern: set it`:                                func(c *Config) { c.Exclude = []string{"/a", "/a/["} },
		`mode is "tail": set it to once`:                                                         func(c *Config) { c.Mode = "tail" },
		`at_end is "exit": set it to keep_running or stop_collector`:                             func(c *Config) { c.AtEnd = "exit" },
		"at_end is stop_collector: set mode to once":                                             func(c *Config) { c.Mode, c.AtEnd = ModeWatch, AtEndStopCollector },
		"poll_interval is 1ms: set it to 10ms to 1h0m0s":                                         func(c *Config) { c.PollInterval = time.Millisecond },
		"end_after is 1s: set it to 5s to 24h0m0s":                                               func(c *Config) { c.EndAfter = time.Second },
		"limits.max_open_traces is 0: set it to 1 to 10000":                                      func(c *Config) { c.Limits.MaxOpenTraces = 0 },
		"limits.max_streams is 1: set it to 2 to 65536":                                          func(c *Config) { c.Limits.MaxStreams = 1 },
	} {
		c := createDefaultConfig()
		c.Include = []string{"/traces"}
		require.NoError(t, c.Validate())
		change(c)
		assert.ErrorContains(t, c.Validate(), want)
	}
}

func TestPatternsMatchDirectoriesAndEverythingBelow(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		matches       bool
	}{
		{"/a/b", "/a/b", true}, {"/a/b", "/a/b/c/d", true}, {"/a/b", "/a", false}, {"/a/b", "/a/bc", false},
		{"/a/**", "/a", true}, {"/a/**", "/a/b/c", true}, {"/a/**/c", "/a/c", true}, {"/a/**/c", "/a/x/y/c/z", true}, {"/a/**/c", "/a/x/y", false},
		{"/a/*/c", "/a/x/c", true}, {"/a/*/c", "/a/x/y/c", false}, {"/a/b[12]", "/a/b2", true}, {"/a/b?", "/a/b", false},
		{"/**/kernel", "/x/y/kernel", true}, {"/", "/x", true},
	} {
		p, err := recorded.ParsePattern(c.pattern)
		require.NoError(t, err)
		assert.Equal(t, c.matches, p.Match(c.path), "%s %s", c.pattern, c.path)
	}
}

func TestADirectoryThatIsALinkIsRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "real"), oneStream(1))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	assert.Equal(t, upTo(5), readAll(t, filepath.Join(link, "re*")).numbers())
}
