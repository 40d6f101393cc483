// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// customManifest is a distribution without the project's components.
const customManifest = `
dist: {module: example.com/somebodys/collector, name: somebodys, version: 1.2.3, output_path: ./out}
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v0.159.0
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter v0.159.0
extensions:
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension v0.159.0
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/extension/pprofextension v0.159.0
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v1.65.0
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.65.0
  - gomod: go.opentelemetry.io/collector/confmap/provider/yamlprovider v1.65.0
`

// customConfiguration has a pipeline already.
const customConfiguration = `
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, compression: none}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}}
`

// profilesPipeline is one that only a collector with the project's converter, or with a flag, accepts.
const profilesPipeline = "service: {pipelines: {profiles: {receivers: [otlp], exporters: [otlp_http]}}}"

// ownComponent matches the line of one of the project's components.
var ownComponent = regexp.MustCompile(`import: github\.com/callbraid/callbraid/\S+`)

// With the steps of docs/ocb.md a custom collector makes spans of a program's calls, and accepts profiles.
func TestACustomCollectorIsBuiltAndRunsByThePage(t *testing.T) {
	t.Parallel()
	blocks := yamlBlocks(t, "../docs/ocb.md")
	require.Len(t, blocks, 7, "the manifest's lines, where the module is, the configuration's lines; limits of otlp; and two for basicauth and one for others, which can't be built here")
	components, replaces, configuration := blocks[0], blocks[1], blocks[2]
	distribution, err := os.ReadFile("../builder-config.yaml")
	require.NoError(t, err)
	for _, component := range ownComponent.FindAllString(string(distribution), -1) {
		assert.Contains(t, components, component+"\n", "the page has the lines of all components")
	}
	var config collectorConfig
	require.NoError(t, yaml.Unmarshal([]byte(configuration), &config))
	for pipeline, p := range config.Service.Pipelines {
		assert.Empty(t, orderViolations(pipeline, isTraces(pipeline), p, config))
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	const where, first = "/src/callbraid", "receiver/bytefrogreceiver"
	for name, lines := range map[string][]string{
		"where the module is, by replaces": {components, strings.ReplaceAll(replaces, where, root)},
		"where the module is, by path":     {strings.Replace(components, first, first+"\n    path: "+root, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := buildDistribution(t, added(t, customManifest, lines...))
			var spans atomic.Int64
			backend, _ := kit.ServeOTLP(t, kit.Accept{Traces: func(td ptrace.Traces) int {
				spans.Add(int64(td.SpanCount()))
				return http.StatusOK
			}})
			endpoint := testkit.Address(t)
			c := kit.StartProgram(t, program, added(t, fmt.Sprintf(customConfiguration, testkit.Address(t), backend),
				strings.Replace(configuration, "localhost:8765", endpoint, 1), profilesPipeline))
			agentsim(t, "replay", "--endpoint", endpoint, "--speed", "20x", capturePath("shop"))
			want := int64(len(reference.Spans(openCapture(t, "shop"), defaultRules).Spans))
			testkit.Eventually(t, "the spans of all calls", func() (bool, string) {
				return spans.Load() == want, fmt.Sprintf("%d of %d", spans.Load(), want)
			})
			c.Stop(t)
		})
	}
}

// The small distribution is built, and has every component of the shipped configurations for one collector.
func TestTheSmallDistributionRunsTheShippedConfigurations(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../builder-config-small.yaml")
	require.NoError(t, err)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	program := buildDistribution(t, strings.NewReplacer("name: otelcol-callbraid-small", "name: somebodys", "output_path: ./build-small", "output_path: ./out", "=> ../", "=> "+root).
		Replace(string(text)))
	for name, path := range shippedConfigs(t) {
		if config, _ := readConfig(t, path); !config.routes() {
			output, err := exec.CommandContext(t.Context(), program, "validate", "--config", path).CombinedOutput()
			assert.NoError(t, err, "%s: %s", name, output)
		}
	}
}

// buildDistribution builds a distribution from a manifest, and returns its program's path.
func buildDistribution(t *testing.T, manifest string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o644))
	build := exec.CommandContext(t.Context(), "sh", "-c", kit.Command(t, "..", "build it into a collector"))
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "PATH="+filepath.Dir(kit.Builder(t))+":"+os.Getenv("PATH"))
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s\n%s", manifest, output)
	return filepath.Join(dir, "out", "somebodys")
}

// yamlBlocks are the blocks of YAML in a page.
func yamlBlocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var blocks []string
	for _, after := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, closed := strings.Cut(after, "```")
		require.True(t, closed)
		blocks = append(blocks, block)
	}
	return blocks
}

// added is a document in YAML with additions of others, as a person makes them: lists get longer,
// at all depths.
func added(t testing.TB, document string, others ...string) string {
	t.Helper()
	var to map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(document), &to))
	for _, other := range others {
		var more map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(other), &more))
		addTo(to, more)
	}
	text, err := yaml.Marshal(to)
	require.NoError(t, err)
	return string(text)
}

func addTo(to, more map[string]any) {
	for key, value := range more {
		switch value := value.(type) {
		case []any:
			before, _ := to[key].([]any)
			to[key] = append(before, value...)
		case map[string]any:
			if inner, ok := to[key].(map[string]any); ok {
				addTo(inner, value)
				continue
			}
			to[key] = value
		default:
			to[key] = value
		}
	}
}
