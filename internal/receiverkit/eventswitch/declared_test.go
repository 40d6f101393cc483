// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package eventswitch

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// TestEveryEventOfAReceiverIsDeclared compares the constants of the file that makes log records
// with the events in metadata.yaml.
func TestEveryEventOfAReceiverIsDeclared(t *testing.T) {
	constant := regexp.MustCompile(`(?m)^\tevent[A-Z]\w* += "([a-z_.]+)"$`)
	for _, receiver := range []string{"bytefrog", "greys", "lttngjul", "rbkit"} {
		folder := filepath.Join("../../../receiver", receiver+"receiver")
		code, err := os.ReadFile(filepath.Join(folder, "logs.go"))
		require.NoError(t, err)
		want := []string{agentcontrol.EventName}
		for _, found := range constant.FindAllSubmatch(code, -1) {
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
