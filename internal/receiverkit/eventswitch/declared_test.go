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

// TestEveryEventOfAReceiverIsDeclared compares the constants of a receiver's code with the events in metadata.yaml. Many names
// of Greys and Arthas are those of package signals, which compares them.
func TestEveryEventOfAReceiverIsDeclared(t *testing.T) {
	constant := regexp.MustCompile(`(?m)^\t[eE]vent[A-Z]\w* += "([a-z_]+\.[a-z_.]+)"$`)
	for _, receiver := range []string{"bytefrog", "lttngjul", "rbkit"} {
		folder := filepath.Join("../../../receiver", receiver+"receiver")
		want := []string{agentcontrol.EventName}
		for _, found := range constant.FindAllSubmatch(goCode(t, folder), -1) {
			want = append(want, string(found[1]))
		}
		require.Greater(t, len(want), 4, receiver)
		text, err := os.ReadFile(filepath.Join(folder, "metadata.yaml"))
		require.NoError(t, err)
		var metadata struct{ Events map[string]any }
		require.NoError(t, yaml.Unmarshal(text, &metadata))
		slices.Sort(want)
		assert.Equal(t, want, slices.Sorted(maps.Keys(metadata.Events)), receiver)
	}
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
