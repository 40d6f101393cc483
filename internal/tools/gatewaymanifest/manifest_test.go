// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const manifests = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, name))
	require.NoError(t, err)
	return string(text)
}

// components are the modules, with the packages in them, by kind.
func components(t *testing.T, manifest string) map[string][]string {
	t.Helper()
	var kinds map[string]yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &kinds))
	all := map[string][]string{}
	for kind, node := range kinds {
		var modules []struct{ Gomod, Import string }
		if kind == "dist" || kind == "replaces" {
			continue
		}
		require.NoError(t, node.Decode(&modules), kind)
		for _, m := range modules {
			all[kind] = append(all[kind], strings.TrimSpace(m.Gomod+" "+m.Import))
		}
	}
	return all
}

func TestTheGatewayHasTheDistributionsComponentsAndTheAddedOnes(t *testing.T) {
	want, got := components(t, read(t, "builder-config.yaml")), components(t, read(t, "builder-config-gateway.yaml"))
	version := want["exporters"][len(want["exporters"])-1]
	version = version[strings.LastIndex(version, " "):]
	for _, exporter := range added {
		want["exporters"] = append(want["exporters"], "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/"+exporter+version)
	}
	assert.Equal(t, want, got, "run make generate")
}

func TestTheGatewaysManifestIsUpToDate(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made.yaml")
	require.NoError(t, write(filepath.Join(manifests, "builder-config.yaml"), made))
	text, err := os.ReadFile(made)
	require.NoError(t, err)
	assert.Equal(t, read(t, "builder-config-gateway.yaml"), string(text), "run make generate")
}

// If a part of the manifest is not at its place, the tool returns an error.
func TestAManifestThatIsLaidOutOtherwiseIsRefused(t *testing.T) {
	distribution := read(t, "builder-config.yaml")
	for _, line := range renamed {
		_, err := gateway(strings.Replace(distribution, line[0], "", 1))
		assert.ErrorContains(t, err, "got it 0 times")
		_, err = gateway(distribution + line[0])
		assert.ErrorContains(t, err, "got it 2 times")
	}
	_, err := gateway(strings.ReplaceAll(distribution, contrib, "  - gomod: example.com/"))
	require.ErrorContains(t, err, "got none")
	_, err = gateway(strings.ReplaceAll(distribution, "exporter/prometheusremotewriteexporter v", "exporter/prometheusremotewriteexporter_v"))
	require.ErrorContains(t, err, "a module and its version")
	assert.ErrorContains(t, write(filepath.Join(manifests, "go.mod"), filepath.Join(t.TempDir(), "none")), "go.mod: expected")
}
