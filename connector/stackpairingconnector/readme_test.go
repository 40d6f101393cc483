// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

// The names and the defaults of all settings are tested where docs/configuration.md is made
// (internal/tools/configurationpage).

// readme returns README.md.
func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// firsts returns the first cells of the table with this first heading, without their quotes.
func firsts(t *testing.T, heading string) (cells []string) {
	t.Helper()
	_, table, found := strings.Cut(readme(t), "\n| "+heading+" |")
	require.True(t, found, "a table that begins with %q", heading)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
		cells = append(cells, strings.Trim(strings.TrimSpace(strings.Split(row, "|")[1]), "`"))
	}
	return cells
}

func TestTheReadmesConfigurationsAreValid(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	require.Len(t, blocks, 4, "one for each output, and one for repeated calls")
	for _, block := range blocks {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(block[1]))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		sub, err := conf.Sub("connectors::stack_pairing")
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, cfg.Validate())
	}
}

func TestTheReadmeHasEachMetricReasonBoundAndCriterion(t *testing.T) {
	text, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var declared struct {
		Attributes map[string]struct{ Enum []string }
		Telemetry  struct{ Metrics map[string]any }
	}
	require.NoError(t, yaml.Unmarshal(text, &declared))
	var metrics []string
	for name := range declared.Telemetry.Metrics {
		metrics = append(metrics, strings.TrimPrefix(name, "connector_stack_pairing_"))
	}
	assert.ElementsMatch(t, metrics, firsts(t, "Metric"))
	assert.Equal(t, declared.Attributes["reason"].Enum, firsts(t, "`reason`"))
	bounds := slices.Concat(declared.Attributes["bound"].Enum, declared.Attributes["decision"].Enum, declared.Attributes["fold"].Enum)
	slices.Sort(bounds)
	bounds = slices.Compact(bounds) // Some stand for two metrics.
	assert.ElementsMatch(t, bounds, firsts(t, "`bound`"))
	assert.Equal(t, declared.Attributes["criterion"].Enum[1:], firsts(t, "criterion"))
}
