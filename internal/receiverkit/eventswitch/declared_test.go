// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package eventswitch

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// TestEveryEventOfAReceiverIsDeclared compares the constants of each receiver's code with the events in its metadata.yaml.
// Many names of Greys and Arthas are those of package signals, whose test compares them. Here only their switches count.
func TestEveryEventOfAReceiverIsDeclared(t *testing.T) {
	constant := regexp.MustCompile(`(?m)^\t[eE]vent[A-Z]\w* += "([a-z_]+\.[a-z_.]+)"$`)
	files, err := filepath.Glob("../../../receiver/*receiver/metadata.yaml")
	require.NoError(t, err)
	compared := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var metadata struct{ Events map[string]any }
		require.NoError(t, yaml.Unmarshal(text, &metadata), file)
		if len(metadata.Events) == 0 {
			continue
		}
		folder := filepath.Dir(file)
		code := goCode(t, folder)
		assert.True(t, strings.Contains(string(code), "eventswitch.Off("), "%s declares events, so users can switch them off: the code must not send those that eventswitch.Off returns", file)
		if strings.Contains(string(code), `/internal/javamethods/signals"`) {
			continue
		}
		compared++
		var want []string
		if strings.Contains(string(code), "agentcontrol.EventName") {
			want = append(want, agentcontrol.EventName)
		}
		for _, found := range constant.FindAllSubmatch(code, -1) {
			want = append(want, string(found[1]))
		}
		slices.Sort(want)
		assert.Equal(t, want, slices.Sorted(maps.Keys(metadata.Events)),
			"events of %s must be the constants eventName = %q in the code below %s, and agentcontrol.EventName if the code uses it", file, "tracer.event", folder)
	}
	require.Greater(t, compared, 1, "receivers with events of their own")
}

// goCode returns the Go files of a folder and of those below, except tests and generated files.
func goCode(t *testing.T, folder string) (code []byte) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "generated_") {
			return err
		}
		file, err := os.ReadFile(path)
		code = append(code, file...)
		return err
	}))
	return code
}
