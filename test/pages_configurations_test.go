// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/test/kit"
)

// sections are those of a configuration.
var sections = []string{"receivers", "processors", "exporters", "connectors", "extensions", "service"}

// needed are the settings of components that have no complete defaults. A page that adds to another configuration leaves them out.
var needed = map[string]map[string]any{
	"ctf_file":       {"include": []any{"traces"}},
	"file_storage":   {"directory": "."},
	"memory_limiter": {"check_interval": "1s", "limit_mib": 512},
	"otlp_grpc":      {"endpoint": "localhost:4317"},
	"otlp_http":      {"endpoint": "http://localhost:4318"},
	"otlp_json_file": {"path": "spans.json"},
	"prometheus":     {"endpoint": "localhost:8889"},
}

// unused has a pipeline, for configurations without one. The distribution also checks components that no pipeline uses.
const unused = `
receivers: {otlp/unused: {protocols: {grpc: {}}}}
exporters: {nop/unused: {}}
service: {pipelines: {logs/unused: {receivers: [otlp/unused], exporters: [nop/unused]}}}
`

// toThePairing is for configurations that have only the pipelines behind the connector.
const toThePairing = "service: {pipelines: {traces/unused: {receivers: [otlp/unused], exporters: [stack_pairing]}}}"

// notInTheDistribution are components for a distribution of the reader's own.
var notInTheDistribution = regexp.MustCompile(`(?m)^\s+(basicauth|kafka)\b`)

// ofTheEnvironment matches a variable of the environment.
var ofTheEnvironment = regexp.MustCompile(`\$\{env:\w+\}`)

// A reader copies configurations from pages. The distribution accepts each, together with the components that it only names.
func TestTheDistributionAcceptsTheConfigurationsOfPages(t *testing.T) {
	t.Parallel()
	accepted := 0
	for _, pattern := range []string{"../README.md", "../docs/*.md", "../*/*/README.md"} {
		pages, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			for i, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
				document := strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n")
				complete, ok := completed(t, ofTheEnvironment.ReplaceAllString(document, "text"))
				if !ok || notInTheDistribution.MatchString(document) {
					continue
				}
				accepted++
				t.Run(fmt.Sprintf("%s %d", page, i+1), func(t *testing.T) {
					collector := kit.Binary(t)
					if strings.Contains(document, routing) {
						collector = kit.Gateway(t)
					}
					path := filepath.Join(t.TempDir(), "collector.yaml")
					require.NoError(t, os.WriteFile(path, []byte(complete), 0o600))
					output, err := exec.CommandContext(t.Context(), collector, "validate", "--config", path).CombinedOutput()
					assert.NoError(t, err, "%s\n%s", document, output)
				})
			}
		}
	}
	assert.Greater(t, accepted, 25)
}

// completed is a configuration with the components that its pipelines and extensions name, and with a pipeline. Other documents, such as
// manifests, and parts of a component, are none.
func completed(t *testing.T, document string) (complete string, ok bool) {
	t.Helper()
	var config map[string]any
	if yaml.Unmarshal([]byte(document), &config) != nil || len(config) == 0 {
		return "", false
	}
	for section, content := range config {
		if _, list := content.([]any); list || !slices.Contains(sections, section) {
			return "", false
		}
	}
	define := func(section, id string) {
		if section != "processors" && componentType(id) == pairing {
			section = "connectors"
		}
		components, _ := config[section].(map[string]any)
		if components == nil {
			components = map[string]any{}
			config[section] = components
		}
		settings, _ := components[id].(map[string]any)
		if settings == nil {
			settings = map[string]any{}
			components[id] = settings
		}
		for name, value := range needed[componentType(id)] {
			if _, there := settings[name]; !there {
				settings[name] = value
			}
		}
	}
	var named struct {
		Extensions, Receivers, Processors, Exporters map[string]any
		Service                                      struct {
			Extensions []string
			Pipelines  map[string]pipelineConfig
		}
	}
	if yaml.Unmarshal([]byte(document), &named) != nil {
		return "", false
	}
	s := named.Service
	for section, ids := range map[string][]string{
		"extensions": append(slices.Collect(maps.Keys(named.Extensions)), s.Extensions...),
		"receivers":  slices.Collect(maps.Keys(named.Receivers)),
		"processors": slices.Collect(maps.Keys(named.Processors)),
		"exporters":  slices.Collect(maps.Keys(named.Exporters)),
	} {
		for _, id := range ids {
			define(section, id)
		}
	}
	additions := []string{unused}
	var from, to []string
	for name, p := range s.Pipelines {
		for section, ids := range map[string][]string{"receivers": p.Receivers, "processors": p.Processors, "exporters": p.Exporters} {
			for _, id := range ids {
				define(section, id)
			}
		}
		if len(p.Receivers) == 0 {
			additions = append(additions, "service: {pipelines: {"+name+": {receivers: [otlp/unused]}}}")
		}
		from, to = append(from, p.Receivers...), append(to, p.Exporters...)
	}
	if slices.Contains(from, pairing) && !slices.Contains(to, pairing) {
		additions = append(additions, toThePairing)
	}
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	return added(t, string(text), additions...), true
}
