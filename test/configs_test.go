// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/test/kit"
)

// Each shipped configuration has to follow the rules for pipelines: which components are between a
// receiver of call events and the exporters, and in which order.

// collectorConfig is as much of a collector's configuration as the rules speak of.
type collectorConfig struct {
	Extensions map[string]struct {
		Compaction *struct {
			OnRebound bool `yaml:"on_rebound"`
		}
		AllowDisruptive bool `yaml:"allow_disruptive"`
	}
	Receivers  map[string]receiverConfig
	Processors map[string]struct {
		LimitMiB int `yaml:"limit_mib"`
		SpikeMiB int `yaml:"spike_limit_mib"`
	}
	Exporters  map[string]exporterConfig
	Connectors map[string]yaml.Node
	Service    struct {
		Pipelines map[string]pipelineConfig
	}
}

// routes reports whether the configuration is for the gateway's distribution.
func (c collectorConfig) routes() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(c.Exporters)), func(id string) bool { return componentType(id) == routing })
}

type pipelineConfig struct {
	Receivers, Processors, Exporters []string
}

// spanReceivers are the receivers whose spans are no batches of call events. The connector has paired
// its spans.
var spanReceivers = []string{"arthas", "greys", "rbkit", pairing}

// carriesBatches reports whether a receiver of the pipeline can send batches.
func (p pipelineConfig) carriesBatches() bool {
	return slices.ContainsFunc(p.Receivers, func(id string) bool { return !slices.Contains(spanReceivers, componentType(id)) })
}

// receiverConfig is as much of a receiver as the rules speak of: how large requests may be that an
// otlp receiver accepts.
type receiverConfig struct {
	Protocols map[string]*struct {
		MaxMessageMiB int64 `yaml:"max_recv_msg_size_mib"`
		MaxBodyBytes  int64 `yaml:"max_request_body_size"`
		Middlewares   []struct{ ID string }
	}
}

type exporterConfig struct {
	Middlewares  []struct{ ID string }
	SendingQueue *struct {
		Sizer, Storage  string
		BlockOnOverflow bool  `yaml:"block_on_overflow"`
		QueueSize       int64 `yaml:"queue_size"`
		Batch           *struct {
			Sizer   string
			MaxSize int64 `yaml:"max_size"`
		}
	} `yaml:"sending_queue"`
	RetryOnFailure *struct {
		InitialInterval time.Duration `yaml:"initial_interval"`
		MaxInterval     time.Duration `yaml:"max_interval"`
		MaxElapsedTime  string        `yaml:"max_elapsed_time"`
	} `yaml:"retry_on_failure"`
	// Rotation is that of a file.
	Rotation *struct {
		MaxMegabytes int `yaml:"max_megabytes"`
		MaxBackups   int `yaml:"max_backups"`
	}
}

const (
	pairing = "stack_pairing"
	// routing is the exporter that only the gateway's distribution has.
	routing = "load_balancing"

	// maxHandOverBytes is the least size of a queue: it refuses a larger hand-over forever, even if
	// it is empty.
	maxHandOverBytes = 64 << 20

	// maxMemoryMiB is the most that a memory limiter allows: more, and a machine of 4 GiB has none.
	maxMemoryMiB = 3072

	// minRequestBytes is the least limit of an OTLP receiver: a hand-over has 1 MiB of batches, and
	// some more. maxRequestBytes is the largest limit at which nested attributes of a request use
	// less than 300 MB.
	minRequestBytes = 1<<20 + 1<<18
	maxRequestBytes = 2 << 20
)

// samplers are the processors that decide by trace. A batch of call events is not a trace, so
// samplers are only allowed after pairing.
var samplers = []string{"tail_sampling", "groupbytrace", "probabilistic_sampler"}

// neverRefuses are the consumers without a queue that accept all data, so that no other consumer
// receives it twice because of them.
var neverRefuses = []string{"span_metrics", "nop", "flame_graph", "perfetto"}

// files are the exporters that write to files.
var files = []string{"otlp_json_file", "perfetto", "file"}

// deliveredTwice are the hand-overs that a retry may deliver twice to one of their consumers. The
// other consumer recognises spans that it has.
var deliveredTwice = map[string]string{
	"standalone.yaml traces/kept":      "otlp_json_file/spans",
	"ctf-file.yaml traces":             "otlp_json_file/spans",
	"ctf-file-kernel.yaml traces/kept": "otlp_json_file/spans",
}

// componentType returns the type of a component's ID, "otlp_json_file" for "otlp_json_file/spans".
func componentType(id string) string {
	kind, _, _ := strings.Cut(id, "/")
	return kind
}

func indexOfType(ids []string, kind string) int {
	return slices.IndexFunc(ids, func(id string) bool { return componentType(id) == kind })
}

func isTraces(pipeline string) bool { return componentType(pipeline) == "traces" }

// shippedConfigs returns the paths of the configurations, by file name.
func shippedConfigs(t testing.TB) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../config/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths, "no configurations found: this test has to run in its own directory, beside config/")
	byName := make(map[string]string, len(paths))
	for _, path := range paths {
		byName[filepath.Base(path)] = path
	}
	return byName
}

// shipped is a configuration with other values of some settings, each of which it has once.
func shipped(t testing.TB, name string, settings map[string]string) string {
	t.Helper()
	text, err := os.ReadFile(shippedConfigs(t)[name])
	require.NoError(t, err)
	configuration := string(text)
	for setting, value := range settings {
		require.Equal(t, 1, strings.Count(configuration, setting+"\n"), setting)
		field, _, _ := strings.Cut(setting, ":")
		configuration = strings.Replace(configuration, setting, field+": "+value, 1)
	}
	return configuration
}

// allAttributes are for the setting stack_pairing of a configuration: spans have the number of
// their entry, and overloaded methods have their text.
const allAttributes = "\n    span_attributes: {sequence: true, function_text: true}"

func readConfig(t *testing.T, path string) (config collectorConfig, document yaml.Node) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &config))
	require.NoError(t, yaml.Unmarshal(content, &document))
	require.NotEmpty(t, config.Service.Pipelines, "the configuration has no pipelines")
	return config, document
}

// violations returns every rule that the configuration breaks, in words.
func violations(name string, config collectorConfig, document *yaml.Node) []string {
	var broken []string
	for pipeline, p := range config.Service.Pipelines {
		where := name + " " + pipeline
		broken = append(broken, orderViolations(where, isTraces(pipeline), p, config)...)
		if isTraces(pipeline) {
			broken = append(broken, queueViolations(where, p, config)...)
		}
	}
	broken = append(broken, limitViolations(name, config)...)
	broken = append(broken, requestViolations(name, config)...)
	broken = append(broken, pageViolations(name, config)...)
	return append(broken, endpointViolations(name, "", document)...)
}

// limitViolations checks that memory, disks, and agents' commands have limits.
func limitViolations(name string, config collectorConfig) []string {
	var broken []string
	for id, p := range config.Processors {
		if componentType(id) == "memory_limiter" && (p.LimitMiB <= 0 || p.LimitMiB > maxMemoryMiB || p.SpikeMiB <= 0 || p.SpikeMiB >= p.LimitMiB) {
			broken = append(broken, fmt.Sprintf("%s: %s lets the collector have %d MiB, of which %d as a spike", name, id, p.LimitMiB, p.SpikeMiB))
		}
	}
	for id, e := range config.Exporters {
		if r := e.Rotation; slices.Contains(files, componentType(id)) && (r == nil || r.MaxMegabytes <= 0 || r.MaxBackups <= 0) {
			broken = append(broken, name+": "+id+" fills the disk; it needs rotation with max_megabytes and max_backups")
		}
	}
	for id, x := range config.Extensions {
		if x.AllowDisruptive {
			broken = append(broken, name+": "+id+" lets every client disrupt programs")
		}
	}
	return broken
}

// pageViolations checks that readers of prometheus exporters share pages.
func pageViolations(name string, config collectorConfig) (broken []string) {
	for id, e := range config.Exporters {
		if componentType(id) == "prometheus" && (len(e.Middlewares) == 0 || e.Middlewares[0].ID != "memory_budget") {
			broken = append(broken, fmt.Sprintf("%s: %s makes a page for each slow reader; memory_budget has to be its first of middlewares", name, id))
		}
	}
	return broken
}

// requestViolations checks that OTLP receivers limit the size of requests.
func requestViolations(name string, config collectorConfig) []string {
	var broken []string
	for id, r := range config.Receivers {
		for protocol, p := range r.Protocols {
			limit, setting := int64(0), map[string]string{"grpc": "max_recv_msg_size_mib", "http": "max_request_body_size"}[protocol]
			if p != nil {
				limit = max(p.MaxMessageMiB<<20, p.MaxBodyBytes)
			}
			if limit < minRequestBytes || limit > maxRequestBytes {
				broken = append(broken, fmt.Sprintf("%s: %s over %s accepts requests of %d bytes; it needs %s of 2 MiB", name, id, protocol, limit, setting))
			}
			// The first one: others would see requests that are not decoded yet.
			if p != nil && (len(p.Middlewares) == 0 || p.Middlewares[0].ID != "memory_budget") {
				broken = append(broken, fmt.Sprintf("%s: %s over %s decodes requests without a bound of memory; memory_budget has to be its first of middlewares", name, id, protocol))
			}
		}
	}
	return broken
}

// storageViolations checks a queue, which for the gateway's distribution is on disk, in files that shrink.
func storageViolations(where, id string, config collectorConfig) []string {
	storage := config.Exporters[id].SendingQueue.Storage
	switch x, ok := config.Extensions[storage]; {
	case storage == "" && config.routes():
		return []string{where + ": the queue of " + id + " is in memory; in the first tier it needs storage"}
	case ok && (x.Compaction == nil || !x.Compaction.OnRebound):
		return []string{where + ": the file of the queue of " + id + " never shrinks; " + storage + " needs compaction"}
	}
	return nil
}

// orderViolations checks which components a pipeline has, and their order. A memory limiter has to be
// in front of a connector: behind it, it refuses data that the connector must then hold or drop.
func orderViolations(where string, traces bool, p pipelineConfig, config collectorConfig) []string {
	var broken []string
	if indexOfType(p.Processors, "batch") >= 0 {
		broken = append(broken, where+": the batch processor reports success before delivery; batch in the exporter's sending_queue")
	}
	isConnector := func(id string) bool { _, is := config.Connectors[id]; return is }
	isReceiver := func(id string) bool { return !isConnector(id) }
	if slices.ContainsFunc(p.Receivers, isConnector) && indexOfType(p.Processors, "memory_limiter") >= 0 {
		broken = append(broken, where+": memory_limiter refuses data of a connector; it belongs in front of the connector")
	}
	if slices.ContainsFunc(p.Receivers, isReceiver) && (len(p.Processors) == 0 || componentType(p.Processors[0]) != "memory_limiter") {
		broken = append(broken, where+": memory_limiter has to be first")
	}
	if !traces {
		return broken
	}
	paired := indexOfType(p.Processors, pairing)
	if paired < 0 {
		paired = len(p.Processors)
	}
	for _, sampler := range samplers {
		if at := indexOfType(p.Processors, sampler); at >= 0 && at < paired {
			broken = append(broken, where+": "+sampler+" samples batches of call events; it belongs after "+pairing)
		}
	}
	return broken
}

// queueViolations checks the consumers of a traces pipeline.
func queueViolations(where string, p pipelineConfig, config collectorConfig) []string {
	var broken []string
	for _, id := range p.Exporters {
		if _, isConnector := config.Connectors[id]; isConnector || slices.Contains(neverRefuses, componentType(id)) {
			if len(p.Exporters) > 1 && !slices.Contains(neverRefuses, componentType(id)) {
				broken = append(broken, where+": the connector "+id+" has no queue and may refuse data that others accepted: they get it twice")
			}
			continue
		}
		queue := config.Exporters[id].SendingQueue
		if queue == nil {
			if len(p.Exporters) > 1 && deliveredTwice[where] != id {
				broken = append(broken, where+": of several consumers each needs a sending_queue, "+id+" has none")
			}
			continue
		}
		if !queue.BlockOnOverflow {
			broken = append(broken, where+": the queue of "+id+" needs block_on_overflow, or a full one drops")
		}
		if queue.Sizer != "bytes" {
			broken = append(broken, where+": the queue of "+id+" needs sizer: bytes, spans and batches differ too much in size")
		}
		if queue.QueueSize < maxHandOverBytes {
			broken = append(broken, where+": the queue of "+id+" has no room for a whole hand-over")
		}
		if b := queue.Batch; b != nil && (b.Sizer != "" && b.Sizer != "bytes" || b.MaxSize <= 0 || b.MaxSize >= maxRequestBytes) {
			broken = append(broken, where+": batches of "+id+" need a max_size in bytes that the second tier accepts")
		}
		broken = append(broken, storageViolations(where, id, config)...)
		r := config.Exporters[id].RetryOnFailure
		if r == nil || r.MaxElapsedTime != "0s" {
			broken = append(broken, where+": "+id+" gives up and drops; retry_on_failure needs max_elapsed_time: 0s")
		}
		if r != nil && r.MaxInterval > 0 && r.InitialInterval > r.MaxInterval {
			broken = append(broken, where+": "+id+" waits longer before its first retry than max_interval")
		}
	}
	return broken
}

// hostSettings are the names under which components listen or connect.
var hostSettings = regexp.MustCompile(`^(endpoint|host|hostnames|publish|request)$`)

// hostAndPort matches an address in any setting.
var hostAndPort = regexp.MustCompile(`^(\[[^]]*\]|[^/ :]*):[0-9]+$`)

// endpointViolations walks the document and checks that every address is on localhost.
func endpointViolations(name, path string, node *yaml.Node) []string {
	var broken []string
	if node.Kind != yaml.MappingNode {
		for _, child := range node.Content {
			broken = append(broken, endpointViolations(name, path, child)...)
		}
		return broken
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		at := strings.TrimPrefix(path+"::"+key, "::")
		values := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			values = value.Content
		}
		for _, address := range values {
			named := hostSettings.MatchString(key) || hostAndPort.MatchString(address.Value)
			if address.Kind == yaml.ScalarNode && named && host(address.Value) != "localhost" {
				broken = append(broken, name+": "+at+" is "+address.Value+", not on localhost")
			}
		}
		broken = append(broken, endpointViolations(name, at, value)...)
	}
	return broken
}

// host returns the host of an address with or without a port, or of the URL of a server.
func host(address string) string {
	address = strings.TrimPrefix(address, "http://")
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

func TestShippedConfigurationsFollowTheRules(t *testing.T) {
	for name, path := range shippedConfigs(t) {
		t.Run(name, func(t *testing.T) {
			config, document := readConfig(t, path)
			assert.Empty(t, violations(name, config, &document))
		})
	}
}

// A recorded trace of the kernel has the calls of its live session.
func TestRecordedAndLiveTracesOfTheKernelHaveTheSameRules(t *testing.T) {
	rules := func(name, receiver string) []any {
		text, err := os.ReadFile(shippedConfigs(t)[name])
		require.NoError(t, err)
		var config struct {
			Receivers map[string]struct {
				CallRules []any `yaml:"call_rules"`
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &config))
		return config.Receivers[receiver].CallRules
	}
	live := rules("lttng-kernel.yaml", "lttng_live")
	assert.NotEmpty(t, live)
	assert.Equal(t, live, rules("ctf-file-kernel.yaml", "ctf_file"))
}

// yamlBlock is a piece of configuration in a page, without its indentation.
var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```")

// A user who copies a receiver from a page must also copy its limits.
func TestReceiversInPagesLimitRequests(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../README.md", "../docs/*.md", "../*/*/README.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	otlp := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			var config collectorConfig
			// Some show a part of a configuration, which may be none by itself.
			if yaml.Unmarshal([]byte(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n")), &config) != nil {
				continue
			}
			for id := range config.Receivers {
				if componentType(id) == "otlp" {
					otlp++
				}
			}
			assert.Empty(t, requestViolations(page, config))
		}
	}
	assert.GreaterOrEqual(t, otlp, 2, "docs/scale.md and docs/ocb.md show receivers")
}

func TestShippedConfigurationsPairBatchesBeforeTheyExportThem(t *testing.T) {
	for name, path := range shippedConfigs(t) {
		t.Run(name, func(t *testing.T) {
			config, _ := readConfig(t, path)
			for pipeline, p := range config.Service.Pipelines {
				if !isTraces(pipeline) || indexOfType(p.Processors, pairing) >= 0 || !p.carriesBatches() {
					continue
				}
				for _, id := range p.Exporters {
					assert.Contains(t, []string{"otlp_grpc", routing, pairing}, componentType(id),
						"%s has no %s: unpaired batches may only go to other collectors, or to the connector", pipeline, pairing)
				}
			}
		})
	}
}

// The rules are checked in turn against a configuration that breaks just one.
func TestAConfigurationThatBreaksARuleIsNoticed(t *testing.T) {
	const good = `
extensions: {file_storage: {directory: ., compaction: {on_rebound: true}}, agent_control: {}}
receivers:
  bytefrog: {endpoint: "localhost:8765"}
  otlp: {protocols: {grpc: {max_recv_msg_size_mib: 2, middlewares: [{id: memory_budget}]}, http: {max_request_body_size: 2097152, middlewares: [{id: memory_budget}]}}}
  rbkit: {servers: [{publish: "localhost:5555", request: "localhost:5556"}]}
processors: {memory_limiter: {limit_mib: 1024, spike_limit_mib: 256}}
connectors: {span_metrics: , forward: }
exporters:
  load_balancing: {resolver: {static: {hostnames: [localhost:4320]}}}
  otlp_grpc:
    endpoint: localhost:4317
    sending_queue: {storage: file_storage, sizer: bytes, queue_size: 134217728, block_on_overflow: true, batch: {max_size: 1572864}}
    retry_on_failure: {initial_interval: 1s, max_interval: 5s, max_elapsed_time: 0s}
  file: {path: spans.json, rotation: {max_megabytes: 100, max_backups: 3}}
  prometheus: {endpoint: "localhost:8889", middlewares: [{id: memory_budget}]}
service:
  pipelines:
    traces: {receivers: [bytefrog], processors: [memory_limiter, stack_pairing, tail_sampling], exporters: [otlp_grpc, span_metrics]}
    metrics: {receivers: [span_metrics], exporters: [otlp_grpc]}
`
	for _, test := range []struct{ name, old, new, want string }{
		{"a batch processor", "stack_pairing,", "stack_pairing, batch/x,", "the batch processor reports success before delivery"},
		{"no memory limiter", "memory_limiter, ", "", "memory_limiter has to be first"},
		{"a receiver beside a connector without a memory limiter", "receivers: [span_metrics]", "receivers: [span_metrics, bytefrog]", "memory_limiter has to be first"},
		{"a memory limiter behind a connector", "receivers: [span_metrics]", "receivers: [span_metrics], processors: [memory_limiter]", "memory_limiter refuses data of a connector"},
		{"sampling before pairing", "stack_pairing, tail_sampling", "tail_sampling, stack_pairing", "tail_sampling samples batches"},
		{"sampling without pairing", "stack_pairing, ", "", "tail_sampling samples batches"},
		{"a second consumer without a queue", "[otlp_grpc, span_metrics]", "[otlp_grpc, file]", "file has none"},
		{"a second consumer that is a connector", "[otlp_grpc, span_metrics]", "[otlp_grpc, forward]", "the connector forward has no queue"},
		{"a queue that drops", "block_on_overflow: true", "block_on_overflow: false", "needs block_on_overflow"},
		{"a queue counted in requests", "sizer: bytes, queue_size", "queue_size", "needs sizer: bytes"},
		{"a queue that is too small", "queue_size: 134217728", "queue_size: 1000", "no room for a whole hand-over"},
		{"batches without a limit", "{max_size: 1572864}", "{min_size: 1}", "need a max_size in bytes"},
		{"batches that gRPC refuses", "1572864", "15728640", "need a max_size in bytes"},
		{"an exporter that gives up", "max_elapsed_time: 0s", "max_elapsed_time: 300s", "gives up and drops"},
		{"a queue in memory in the first tier", "storage: file_storage, ", "", "the queue of otlp_grpc is in memory"},
		{"a queue whose file never shrinks", ", compaction: {on_rebound: true}", "", "file_storage needs compaction"},
		{"a first pause that is too long", "initial_interval: 1s", "initial_interval: 50s", "waits longer before its first retry"},
		{"memory without a limit", "limit_mib: 1024", "limit_mib: 204800", "lets the collector have 204800 MiB"},
		{"memory that is all spike", "spike_limit_mib: 256", "spike_limit_mib: 1024", "of which 1024 as a spike"},
		{"a file without rotation", ", rotation: {max_megabytes: 100, max_backups: 3}", "", "file fills the disk"},
		{"another file without rotation", "file: {path: spans.json, rotation: {max_megabytes: 100, max_backups: 3}}", "otlp_json_file: {path: spans.json}", "otlp_json_file fills the disk"},
		{"files without number", ", max_backups: 3", "", "file fills the disk"},
		{"control of everything", "agent_control: {}", "agent_control: {allow_disruptive: true}", "lets every client disrupt programs"},
		{"gRPC with its default limit", "grpc: {max_recv_msg_size_mib: 2, middlewares: [{id: memory_budget}]}", "grpc: ", "otlp over grpc accepts requests of 0 bytes; it needs max_recv_msg_size_mib"},
		{"gRPC that accepts too much", "max_recv_msg_size_mib: 2", "max_recv_msg_size_mib: 4", "otlp over grpc accepts requests of 4194304 bytes"},
		{"gRPC that refuses batches", "max_recv_msg_size_mib: 2", "max_recv_msg_size_mib: 1", "otlp over grpc accepts requests of 1048576 bytes"},
		{"HTTP with its default limit", "http: {max_request_body_size: 2097152,", "http: {", "otlp over http accepts requests of 0 bytes; it needs max_request_body_size"},
		{"HTTP that accepts too much", "2097152", "20971520", "otlp over http accepts requests of 20971520 bytes"},
		{"gRPC without middleware", "max_recv_msg_size_mib: 2, middlewares: [{id: memory_budget}]", "max_recv_msg_size_mib: 2", "otlp over grpc decodes requests without a bound"},
		{"HTTP with another middleware first", "2097152, middlewares: [{id: memory_budget}]", "2097152, middlewares: [{id: other}, {id: memory_budget}]", "otlp over http decodes requests without a bound"},
		{"pages without middleware", "\"localhost:8889\", middlewares: [{id: memory_budget}]", "\"localhost:8889\"", "prometheus makes a page for each slow reader"},
		{"a server elsewhere", "publish: \"localhost:5555\"", "publish: \"10.0.0.1:5555\"", "is 10.0.0.1:5555, not on localhost"},
		{"another server elsewhere", "request: \"localhost:5556\"", "request: \"10.0.0.1:5556\"", "is 10.0.0.1:5556, not on localhost"},
		{"an address for everyone", `"localhost:8765"`, `"0.0.0.0:8765"`, "receivers::bytefrog::endpoint is 0.0.0.0:8765, not on localhost"},
		{"an address of an unknown setting", `"localhost:8765"`, `"localhost:8765", listen: "[::]:8766"`, "receivers::bytefrog::listen is [::]:8766, not on localhost"},
		{"an address without host", `"localhost:8765"`, `"localhost:8765", listen: ":8766"`, "receivers::bytefrog::listen is :8766, not on localhost"},
		{"a URL elsewhere", "request: \"localhost:5556\"", "request: \"http://10.0.0.1:5556\"", "is http://10.0.0.1:5556, not on localhost"},
		{"a collector for everyone", "hostnames: [localhost:4320]", "hostnames: [pair.example.com:4320]", "is pair.example.com:4320, not on localhost"},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(text string) []string {
				var config collectorConfig
				var document yaml.Node
				require.NoError(t, yaml.Unmarshal([]byte(text), &config))
				require.NoError(t, yaml.Unmarshal([]byte(text), &document))
				return violations("good.yaml", config, &document)
			}
			require.Empty(t, check(good))
			bad := strings.Replace(good, test.old, test.new, 1)
			require.NotEqual(t, good, bad)
			broken := check(bad)
			require.Len(t, broken, 1, "one rule is broken: %q", broken)
			assert.Contains(t, broken[0], test.want)
		})
	}
}

// open.yaml is the only file that opens anything: all listeners of the shipped configuration, at
// the same ports.
func TestOpenYAMLOpensTheListenersOfTheShippedConfiguration(t *testing.T) {
	type endpoints map[string]struct{ Endpoint string }
	type sections struct{ Extensions, Receivers, Exporters endpoints }
	read := func(path string) (all sections) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &all))
		return all
	}
	shipped, open := read(shippedConfigs(t)["standalone.yaml"]), read("../packaging/open.yaml")
	for _, section := range []endpoints{shipped.Extensions, shipped.Receivers, shipped.Exporters} {
		for id, c := range section {
			if c.Endpoint == "" { // it writes files
				delete(section, id)
				continue
			}
			_, port, err := net.SplitHostPort(c.Endpoint)
			require.NoError(t, err)
			c.Endpoint = "0.0.0.0:" + port
			section[id] = c
		}
	}
	assert.Equal(t, shipped, open)
}

// packagedAddress is an address, in a file that is packaged, that other machines may reach.
var packagedAddress = regexp.MustCompile(`0\.0\.0\.0|\[::\]|[= ]:[0-9]{2,5}\b`)

func TestOnlyOpenYAMLListensForOtherMachines(t *testing.T) {
	files, err := filepath.Glob("../packaging/*")
	require.NoError(t, err)
	require.Greater(t, len(files), 5)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		// The man page has an example.
		if info.IsDir() || filepath.Base(file) == "open.yaml" || filepath.Ext(file) == ".1" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") {
				assert.NotRegexp(t, packagedAddress, line, file)
			}
		}
	}
}

func TestTheDistributionAcceptsTheShippedConfigurations(t *testing.T) {
	t.Parallel()
	for name, path := range shippedConfigs(t) {
		t.Run(name, func(t *testing.T) {
			collector := kit.Binary(t)
			if config, _ := readConfig(t, path); config.routes() {
				collector = kit.Gateway(t)
			}
			output, err := exec.CommandContext(t.Context(), collector, "validate", "--config", path).CombinedOutput()
			require.NoError(t, err, "%s", output)
			assert.NotContains(t, string(output), "deprecated")
		})
	}
}
