// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// remedy describes how to get Prometheus. Debian's package starts a service, which tests do not
// need: a binary in PATH is enough.
const remedy = "have prometheus in PATH (Debian: apt-get download prometheus, and dpkg-deb -x of the downloaded file)"

// requirePeers is the environment variable that turns a missing peer into a failure.
const requirePeers = "CALLBRAID_REQUIRE_PEERS"

// configuration scrapes so often that tests don't wait long, and so seldom that a busy machine is
// fast enough: data of a failed scrape is missing until the next. The labels job and instance are
// those of the exporter, which has them from service.name and service.instance.id. With several
// targets each has a label of its own, because a call stream can move between them.
const configuration = `
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: collectors
    honor_labels: true
    static_configs: [{targets: %s}]
`

// manyTargets gives each target a label of its own, as in docs/scale.md.
const manyTargets = `    relabel_configs: [{source_labels: [__address__], target_label: collector}]
`

// Server is a Prometheus with storage of its own.
type Server struct{ address string }

// Start starts a Prometheus that scrapes /metrics at addresses, host:port. It ends with
// the test, which is skipped where there is no Prometheus, or fails if
// CALLBRAID_REQUIRE_PEERS is set.
func Start(t testing.TB, targets ...string) *Server {
	t.Helper()
	list, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(configuration, list)
	if len(targets) > 1 {
		text += manyTargets
	}
	return StartConfigured(t, text)
}

// StartConfigured is Start with a whole configuration.
func StartConfigured(t testing.TB, text string) *Server {
	t.Helper()
	binary := Require(t)
	directory := t.TempDir()
	file := filepath.Join(directory, "prometheus.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{address: testkit.Address(t)}
	arguments := append(pages(binary), "--config.file", file, "--storage.tsdb.path", filepath.Join(directory, "tsdb"),
		"--web.listen-address", s.address, "--enable-feature", "exemplar-storage,native-histograms", "--log.level", "warn")
	kit.RunPeer(t, "Prometheus", exec.Command(binary, arguments...), s.URL()+"/-/ready")
	return s
}

// Require is the path of Prometheus. The test is skipped where there is none, or fails if CALLBRAID_REQUIRE_PEERS is set.
func Require(t testing.TB) string {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		missing(t)
	}
	return binary
}

// Tool is the path of promtool, which Prometheus' packages contain. The test is skipped where there is none, or fails if
// CALLBRAID_REQUIRE_PEERS is set.
func Tool(t testing.TB) string {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		missing(t)
	}
	return tool
}

// pages has Debian's Prometheus find its pages where its package is only unpacked.
func pages(binary string) []string {
	directory := filepath.Join(filepath.Dir(binary), "..", "share", "prometheus", "web")
	if _, err := os.Stat(directory); err != nil {
		return nil
	}
	return []string{"--web.local-assets", directory}
}

// URL is where its pages are.
func (s *Server) URL() string { return "http://" + s.address }

func missing(t testing.TB) {
	t.Helper()
	if os.Getenv(requirePeers) != "" {
		t.Fatalf("expected prometheus in PATH, since %s is set; %s", requirePeers, remedy)
	}
	t.Skipf("no prometheus in PATH: %s", remedy)
}

// client bounds the time of each request.
var client = &http.Client{Timeout: testkit.Patience}
