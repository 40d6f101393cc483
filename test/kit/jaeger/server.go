// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package jaeger

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Version is the name of one of the programs that Jaeger 1.76 is.
type Version string

const (
	// V1 is the command line of Jaeger 1.
	V1 Version = "all-in-one"
	// V2 is made of the Collector.
	V2 Version = "jaeger"
)

// arguments let it listen on loopback only: on one address for OTLP over gRPC, on another for the
// query API, and on its other ports.
func (v Version) arguments(t testing.TB, otlp, query string) []string {
	t.Helper()
	if v == V1 {
		return allInOne(t, otlp, query)
	}
	return collectorBased(t, otlp, query)
}

func allInOne(t testing.TB, otlp, query string) []string {
	return []string{
		"--collector.otlp.grpc.host-port", otlp, "--query.http-server.host-port", query,
		"--collector.otlp.http.host-port", testkit.Address(t), "--query.grpc-server.host-port", testkit.Address(t),
		"--collector.grpc-server.host-port", testkit.Address(t), "--collector.http-server.host-port", testkit.Address(t),
		"--admin.http.host-port", testkit.Address(t), "--log-level", "warn",
	}
}

// configuration is that of Jaeger's all-in-one (cmd/jaeger/internal/all-in-one.yaml), reduced to
// the necessary parts.
const configuration = `
extensions:
  jaeger_storage: {backends: {memory: {memory: {max_traces: %d}}}}
  jaeger_query: {storage: {traces: memory}, http: {endpoint: %q}, grpc: {endpoint: %q}}
receivers:
  otlp: {protocols: {grpc: {endpoint: %q}}}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}
  telemetry:
    metrics: {level: none}
    logs: {level: warn}
`

func collectorBased(t testing.TB, otlp, query string) []string {
	return []string{"--config", fmt.Sprintf("yaml:"+configuration, MaxTraces, query, testkit.Address(t), otlp)}
}

// backends is the environment variable that names the directory of `make backends`.
const backends = "CALLBRAID_BACKENDS"

// remedy is how Jaeger is had.
const remedy = "run `make backends`, which builds it, and have " + backends + " name the directory bin/backends"

// requirePeers is the environment variable that turns a missing peer into a failure.
const requirePeers = "CALLBRAID_REQUIRE_PEERS"

// Server is a Jaeger.
type Server struct {
	// OTLP is its address for OTLP over gRPC, host:port.
	OTLP string

	query string
}

// Start starts a Jaeger, which ends with the test. Where there is none, the test is skipped,
// or fails if CALLBRAID_REQUIRE_PEERS is set.
func Start(t testing.TB, version Version) *Server {
	t.Helper()
	s := &Server{OTLP: testkit.Address(t), query: testkit.Address(t)}
	command := exec.Command(Require(t, version), version.arguments(t, s.OTLP, s.query)...)
	// Otherwise it sends its own spans to a Jaeger on the default port.
	command.Env = append(command.Environ(), "OTEL_TRACES_SAMPLER=always_off")
	kit.RunPeer(t, "Jaeger", command, "http://"+s.query+"/api/v3/services")
	return s
}

// Require is the path of a Jaeger. Where there is none, the test is skipped, or fails if
// CALLBRAID_REQUIRE_PEERS is set.
func Require(t testing.TB, version Version) (path string) {
	t.Helper()
	if directory := os.Getenv(backends); directory != "" {
		path = filepath.Join(directory, string(version))
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	if os.Getenv(requirePeers) != "" {
		t.Fatalf("expected Jaeger's %s, since %s is set; %s", version, requirePeers, remedy)
	}
	t.Skipf("no %s of Jaeger: %s", version, remedy)
	return ""
}

// client bounds the time of each request: on a busy machine Jaeger takes seconds for 20,000 spans.
var client = &http.Client{Timeout: testkit.Patience}

// MaxTraces is the number of traces that V2 stores, and the largest number for a search of it.
const MaxTraces = 10_000
