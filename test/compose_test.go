// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/componentkit/figures"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/dashboard"
	"github.com/callbraid/callbraid/test/kit/jaeger"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// packaging/compose: docker compose starts the collector with Jaeger, Prometheus and Grafana, and plays a Maven build. Containers
// of other projects do not run here. So the tests check the file with the library of `docker compose`, and run the same commands
// and configurations with a real Jaeger and a real Prometheus.

const (
	composeFolder = "../packaging/compose"
	// In compose.yaml.
	ownImage  = "otelcol-callbraid"
	inGrafana = "/var/lib/grafana/dashboards"
)

// composed is compose.yaml as `docker compose` reads it. The library validates it by the schema of the specification.
func composed(t *testing.T) *types.Project {
	t.Helper()
	folder, err := filepath.Abs(composeFolder)
	require.NoError(t, err)
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: folder, ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(folder, "compose.yaml")}},
	})
	require.NoError(t, err)
	return project
}

var copied = regexp.MustCompile(`(?m)^COPY (\S+) (/\S+)$`)

// fileOf is the project's file that a container has at a path, by a mount or from the image.
func fileOf(t *testing.T, service types.ServiceConfig, inside string) string {
	t.Helper()
	for _, v := range service.Volumes {
		if rest, ok := strings.CutPrefix(inside, v.Target); ok && v.Type == types.VolumeTypeBind {
			return filepath.Join(v.Source, rest)
		}
	}
	if service.Image == ownImage {
		dockerfile, err := os.ReadFile("../packaging/Dockerfile")
		require.NoError(t, err)
		for _, of := range copied.FindAllStringSubmatch(string(dockerfile), -1) {
			if of[2] == inside {
				return filepath.Join("..", of[1])
			}
		}
	}
	t.Fatalf("expected a file of the project at %s of %s, got none", inside, service.Name)
	return ""
}

// textOfFile is the content of such a file, with other values of some texts, each of which it has once.
func textOfFile(t *testing.T, service types.ServiceConfig, inside string, others map[string]string) string {
	t.Helper()
	text, err := os.ReadFile(fileOf(t, service, inside))
	require.NoError(t, err)
	replaced := string(text)
	for old, other := range others {
		require.Equal(t, 1, strings.Count(replaced, old), "%s in %s", old, inside)
		replaced = strings.Replace(replaced, old, other, 1)
	}
	return replaced
}

// configurationsOf are the paths of the collector's configurations inside its container, in order.
func configurationsOf(t *testing.T, collector types.ServiceConfig) (paths []string) {
	t.Helper()
	for _, argument := range collector.Command {
		name, ok := strings.CutPrefix(argument, "--config=")
		require.True(t, ok, argument)
		paths = append(paths, name)
	}
	return paths
}

func TestTheComposeFileIsSafeAndComplete(t *testing.T) {
	for name, service := range composed(t).Services {
		t.Run(name, func(t *testing.T) {
			for _, port := range service.Ports {
				assert.Equal(t, "127.0.0.1", port.HostIP, "port %d is published to other machines", port.Target)
			}
			if service.Image == ownImage {
				assert.Equal(t, types.PullPolicyNever, service.PullPolicy, "a registry may have another image of this name")
			} else {
				assert.Regexp(t, `:v?\d+\.\d+\.\d+$`, service.Image, "the image has no fixed version")
			}
			for _, v := range service.Volumes {
				if v.Type == types.VolumeTypeBind {
					assert.True(t, v.ReadOnly, v.Source)
					_, err := os.Stat(v.Source)
					assert.NoError(t, err)
					// Packages have the same folders.
					inside, err := filepath.Rel(filepath.Join("..", "packaging"), relative(t, v.Source))
					require.NoError(t, err)
					assert.Regexp(t, `^(compose|grafana|prometheus)\b`, inside)
				}
			}
			if name == "collector" {
				require.NotNil(t, service.StopGracePeriod)
				assert.GreaterOrEqual(t, time.Duration(*service.StopGracePeriod), 90*time.Second)
			}
		})
	}
}

// relative is a path from the folder of the tests.
func relative(t *testing.T, absolute string) string {
	t.Helper()
	here, err := os.Getwd()
	require.NoError(t, err)
	path, err := filepath.Rel(here, absolute)
	require.NoError(t, err)
	return path
}

// The configurations of compose.yaml, as the Collector merges them, follow the rules of the shipped ones.
func TestTheCollectorOfTheComposeFileFollowsTheRules(t *testing.T) {
	collector := composed(t).Services["collector"]
	merged := map[string]any{}
	for _, file := range configurationsOf(t, collector) {
		var more map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(textOfFile(t, collector, file, nil)), &more))
		mergeMaps(merged, more)
	}
	text, err := yaml.Marshal(merged)
	require.NoError(t, err)
	var config collectorConfig
	require.NoError(t, yaml.Unmarshal(text, &config))
	require.NotEmpty(t, config.Service.Pipelines)
	for pipeline, p := range config.Service.Pipelines {
		assert.Empty(t, orderViolations(pipeline, isTraces(pipeline), p, config))
		if isTraces(pipeline) {
			assert.Empty(t, queueViolations(pipeline, p, config))
		}
	}
	assert.Empty(t, limitViolations("compose", config))
	limiter := config.Processors["memory_limiter"]
	assert.Greater(t, int64(collector.MemLimit), int64(limiter.LimitMiB+limiter.SpikeMiB)<<20, "the container has less memory than its collector")
}

// mergeMaps adds a configuration to another as the Collector does: maps are merged, everything else is replaced.
func mergeMaps(to, more map[string]any) {
	for key, value := range more {
		inner, both := to[key].(map[string]any)
		if nested, ok := value.(map[string]any); ok && both {
			mergeMaps(inner, nested)
			continue
		}
		to[key] = value
	}
}

// provisionedSources is as much of Grafana's format for data sources as compose/grafana uses ("Provision Grafana", in its
// documentation). Other fields are errors.
type provisionedSources struct {
	APIVersion  int `yaml:"apiVersion"`
	Datasources []struct {
		Name, UID, Type, Access, URL string
		IsDefault                    bool `yaml:"isDefault"`
		JSONData                     struct {
			TimeInterval                string `yaml:"timeInterval"`
			ExemplarTraceIDDestinations []struct {
				Name          string
				DatasourceUID string `yaml:"datasourceUid"`
			} `yaml:"exemplarTraceIdDestinations"`
		} `yaml:"jsonData"`
	}
}

// provisionedDashboards is the same for dashboards.
type provisionedDashboards struct {
	APIVersion int `yaml:"apiVersion"`
	Providers  []struct {
		Name, Folder, Type string
		AllowUIUpdates     bool `yaml:"allowUiUpdates"`
		Options            struct{ Path string }
	}
}

func decodeStrictly(t *testing.T, text string, to any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(to))
}

func TestGrafanaOfTheComposeFileHasDataSourcesAndDashboards(t *testing.T) {
	project := composed(t)
	grafana := project.Services["grafana"]
	var sources provisionedSources
	decodeStrictly(t, textOfFile(t, grafana, "/etc/grafana/provisioning/datasources/callbraid.yaml", nil), &sources)
	assert.Equal(t, 1, sources.APIVersion)
	require.Len(t, sources.Datasources, 2)
	types := map[string]string{}
	for _, source := range sources.Datasources {
		types[source.UID] = source.Type
		at, err := url.Parse(source.URL)
		require.NoError(t, err)
		service, ok := project.Services[at.Hostname()]
		require.True(t, ok, "no service is %s", at.Hostname())
		assert.True(t, slices.ContainsFunc(service.Ports, func(p composePort) bool { return strconv.Itoa(int(p.Target)) == at.Port() }), source.URL)
	}
	numbers := sources.Datasources[0]
	assert.Equal(t, "prometheus", numbers.Type)
	assert.True(t, numbers.IsDefault, "dashboards find their source as the default one")
	exemplars := numbers.JSONData.ExemplarTraceIDDestinations
	require.Len(t, exemplars, 1)
	assert.Equal(t, "trace_id", exemplars[0].Name)
	assert.Equal(t, "jaeger", types[exemplars[0].DatasourceUID])

	var scraped struct {
		Global struct {
			ScrapeInterval string `yaml:"scrape_interval"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(textOfFile(t, project.Services["prometheus"], "/etc/prometheus/prometheus.yml", nil)), &scraped))
	assert.Equal(t, scraped.Global.ScrapeInterval, numbers.JSONData.TimeInterval)

	var dashboards provisionedDashboards
	decodeStrictly(t, textOfFile(t, grafana, "/etc/grafana/provisioning/dashboards/callbraid.yaml", nil), &dashboards)
	assert.Equal(t, 1, dashboards.APIVersion)
	require.Len(t, dashboards.Providers, 1)
	assert.Equal(t, inGrafana, dashboards.Providers[0].Options.Path)
	home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	require.NotNil(t, home)
	assert.Equal(t, inGrafana, path.Dir(*home))
	assert.NotEmpty(t, dashboard.Expressions(t, fileOf(t, grafana, *home)))
}

type composePort = types.ServicePortConfig

// notPlayedInCompose matches metrics of receivers that compose.yaml does not start, and of breaks, which the build has not.
var notPlayedInCompose = regexp.MustCompile(`otelcol_receiver_(rbkit|greys|arthas|lttng_\w+|ctf_file)_|_stack_pairing_breaks\b`)

// mavenMetrics is a query for all calls in Prometheus.
const mavenMetrics = "sum(code_function_calls_total)"

// patientReceiver is added to the configurations. If a pipeline accepts nothing for max_block, by default 5 s, a program runs on
// untraced, and has fewer calls. That happens on a busy machine.
const patientReceiver = "receivers: {bytefrog: {max_block: 0s}}"

// The commands and configurations of compose.yaml, with other addresses, show the Maven build: spans in Jaeger, numbers in
// Prometheus with exemplars that lead to Jaeger, the dashboards of methods and of the collector, and a flame graph.
func TestTheComposeFileShowsAMavenBuild(t *testing.T) {
	t.Parallel()
	project := composed(t)
	collector, player, scraper := project.Services["collector"], project.Services["maven-build"], project.Services["prometheus"]
	spans := jaeger.Start(t, jaeger.V2)
	agents, pages, metrics := testkit.Address(t), testkit.Address(t), testkit.Address(t)
	files := configurationsOf(t, collector)
	require.Len(t, files, 3)
	c := kit.StartMerged(t, []string{
		textOfFile(t, collector, files[0], nil),
		textOfFile(t, collector, files[1], map[string]string{
			"0.0.0.0:8765": agents, "0.0.0.0:4040": pages, "0.0.0.0:8889": metrics, "0.0.0.0:13133": "${env:HEALTH}",
		}),
		textOfFile(t, collector, files[2], map[string]string{"jaeger:4317": spans.OTLP, "host: 0.0.0.0": "host: 127.0.0.1", "port: 8888": "port: ${env:METRICS_PORT}"}),
		patientReceiver,
	}, "CALLBRAID_DATA="+t.TempDir())
	own := strings.TrimSuffix(strings.TrimPrefix(c.MetricsURL(), "http://"), "/metrics")
	numbers := prometheus.StartConfigured(t, textOfFile(t, scraper, "/etc/prometheus/prometheus.yml", map[string]string{
		"/etc/prometheus/alerts.yaml": absolutePath(t, fileOf(t, scraper, "/etc/prometheus/alerts.yaml")),
		"collector:8889":              metrics, "collector:8888": own,
	}))

	require.Equal(t, []string{"/usr/bin/agentsim"}, []string(player.Entrypoint))
	arguments := slices.Clone([]string(player.Command))
	capture := len(arguments) - 1
	arguments[capture] = fileOf(t, player, arguments[capture])
	for i := range arguments {
		arguments[i] = strings.Replace(arguments[i], "collector:8765", agents, 1)
	}
	output, err := exec.CommandContext(t.Context(), kit.AgentSim(t), arguments...).CombinedOutput()
	require.NoError(t, err, "%s", output)

	numbers.Await(t, mavenMetrics, mavenSpans)
	// keep leaves traces out while there are more than 20,000 calls a second.
	testkit.Eventually(t, "all kept spans are sent", func() (bool, string) {
		look := c.Look(t)
		kept, left := look.Sum(connectorMetrics+"decided_calls"), look.Sum(connectorMetrics+"limited_calls")
		sent := look.Sum(sentSpans, `exporter="otlp_grpc/jaeger"`)
		return kept+left == mavenSpans && sent > 0 && sent == kept, fmt.Sprintf("%v of %v, and %v are left out", sent, kept, left)
	})
	latest := spans.Search(t, "unknown_service:java", 1)
	require.Len(t, latest, 1)
	assert.Empty(t, latest[0].AllWarnings())
	for _, name := range []string{"methods.json", "collector.json"} {
		t.Run(name, func(t *testing.T) {
			isPlayed := func(expression string) bool { return !notPlayedInCompose.MatchString(expression) }
			dashboard.CheckFile(t, filepath.Join("../packaging/grafana", name), isPlayed, numbers)
		})
	}
	t.Run("exemplars lead to traces", func(t *testing.T) {
		exemplars := numbers.Exemplars(t, "code_function_calls_total")
		require.NotEmpty(t, exemplars)
		assert.Positive(t, spans.Trace(t, exemplars[0].Labels["trace_id"]).SpanCount())
	})
	t.Run("flame graph", func(t *testing.T) {
		page := fetch(t, "http://"+pages)
		assert.Contains(t, page, figures.Count(mavenSpans))
	})
}

// absolutePath is the absolute path of a file.
func absolutePath(t *testing.T, file string) string {
	t.Helper()
	absolute, err := filepath.Abs(file)
	require.NoError(t, err)
	return absolute
}

// Prometheus' own tool reads the configuration.
func TestPrometheusAcceptsItsConfigurationInTheComposeFile(t *testing.T) {
	tool := prometheus.Tool(t)
	scraper := composed(t).Services["prometheus"]
	const rules = "/etc/prometheus/alerts.yaml"
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	text := textOfFile(t, scraper, "/etc/prometheus/prometheus.yml", map[string]string{rules: absolutePath(t, fileOf(t, scraper, rules))})
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	output, err := exec.CommandContext(t.Context(), tool, "check", "config", file).CombinedOutput()
	assert.NoError(t, err, "%s", output)
	assert.Contains(t, string(output), "rules found")
}
