// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	last := want["exporters"][len(want["exporters"])-1]
	version := last[strings.LastIndex(last, " "):]
	for _, of := range added {
		for _, component := range of.components {
			want[of.section] = append(want[of.section], "github.com/open-telemetry/opentelemetry-collector-contrib/"+component+version)
		}
	}
	assert.Equal(t, want, got, "run make generate")
}

func TestTheSmallDistributionHasAllOurComponentsAndTheNecessaryOnes(t *testing.T) {
	want, got := components(t, read(t, "builder-config.yaml")), components(t, read(t, "builder-config-small.yaml"))
	module := regexp.MustCompile(`/([^/ ]+) v\S+$`)
	for kind, all := range want {
		if kind == "providers" {
			continue
		}
		want[kind] = slices.DeleteFunc(all, func(line string) bool {
			of := module.FindStringSubmatch(line)
			return of != nil && !slices.Contains(necessary, of[1])
		})
		if len(want[kind]) == 0 {
			delete(want, kind)
		}
	}
	assert.Equal(t, want, got, "run make generate")
}

func TestManifestsAreUpToDate(t *testing.T) {
	made := t.TempDir()
	require.NoError(t, writeAll(manifests, made))
	for _, name := range []string{"builder-config-gateway.yaml", "builder-config-small.yaml"} {
		text, err := os.ReadFile(filepath.Join(made, name))
		require.NoError(t, err)
		assert.Equal(t, read(t, name), string(text), "run make generate")
	}
}

// If a part of the manifest is not at its place, the tool returns an error.
func TestAManifestThatIsLaidOutOtherwiseIsRefused(t *testing.T) {
	ordinary := read(t, "builder-config.yaml")
	for _, of := range []func(string) (string, error){gateway, small} {
		for _, line := range renamed("", "") {
			_, err := of(strings.Replace(ordinary, line[0], "", 1))
			assert.ErrorContains(t, err, "got it 0 times")
			_, err = of(ordinary + line[0])
			assert.ErrorContains(t, err, "got it 2 times")
		}
	}
	_, err := gateway(strings.Replace(ordinary, "\nexporters:", "\n", 1))
	require.ErrorContains(t, err, "expected a section exporters, got none")
	_, err = gateway(strings.ReplaceAll(ordinary, contrib, "  - gomod: example.com/"))
	require.ErrorContains(t, err, "got none")
	_, err = gateway(strings.ReplaceAll(ordinary, "exporter/prometheusremotewriteexporter v", "exporter/prometheusremotewriteexporter_v"))
	require.ErrorContains(t, err, "a module and its version")
	_, err = small(strings.Replace(ordinary, "storage/filestorage v", "storage/filestore v", 1))
	require.ErrorContains(t, err, "expected a component filestorage, got none")
	assert.ErrorContains(t, writeAll(t.TempDir(), t.TempDir()), "builder-config.yaml")
}
