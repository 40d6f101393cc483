// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// olderVersion is what the packages are called that play those of an earlier version.
const olderVersion = "0.0.1"

// older returns a package of an earlier version: the one in CALLBRAID_OLDER_DIST, if that is set, or else this one with another
// number.
func older(t *testing.T, packages, name string) string {
	t.Helper()
	pattern := name + "_*_amd64.deb"
	if folder := os.Getenv("CALLBRAID_OLDER_DIST"); folder != "" {
		return only(t, folder, pattern)
	}
	want(t, "ar", "binutils")
	file := filepath.Join(t.TempDir(), name+"_"+olderVersion+"_amd64.deb")
	change := exec.Command("sh", "-e", "-c", withVersion, "sh", only(t, packages, pattern), olderVersion, file)
	change.Dir = t.TempDir()
	run(t, change)
	require.Equal(t, olderVersion+"\n", run(t, exec.Command("dpkg-deb", "--field", file, "Version")))
	return file
}

// withVersion makes the package $3 of the package $1 with the version $2. It does not unpack the files: outside of the system where the
// package is installed, their group does not exist.
const withVersion = `ar x "$1"
mkdir control
tar xf control.tar.gz -C control
sed -i "s/^Version: .*/Version: $2/" control/control
tar czf control.tar.gz -C control .
ar rc "$3" debian-binary control.tar.gz data.tar.*`

// backend is a server that refuses spans until it is open, and then counts them.
type backend struct {
	mu               sync.Mutex
	open             bool
	refused          int
	spans, truncated int
}

func (b *backend) accept(traces ptrace.Traces) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		b.refused++
		return http.StatusServiceUnavailable
	}
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				b.spans++
				if _, truncated := span.Attributes().Get("callbraid.truncated"); truncated {
					b.truncated++
				}
			}
		}
	}
	return http.StatusOK
}

// events is the number of call events that the received spans and a number of orphans were made of: two for each call, and one for a
// call without its end, or an end without its call.
func (b *backend) events(orphans int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return 2*b.spans - b.truncated + orphans
}

// queued is added to the shipped configuration: spans also go to a server, over a queue on the disk, and call trees are stored beside it.
func queued(server string) string {
	return fmt.Sprintf(`
extensions: {file_storage: {directory: /var/lib/otelcol-callbraid/queues, create_directory: true}}
exporters:
  otlp_http:
    endpoint: %s
    compression: none
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
    sending_queue: {storage: file_storage, block_on_overflow: true}
  flame_graph: {storage: file_storage}
service:
  extensions: [memory_budget, health_check, file_storage]
  pipelines: {traces/kept: {exporters: [otlp_http, flame_graph]}}
`, server)
}

// sent is the number of events in the last line of agentsim.
var sent = regexp.MustCompile(`sent ([0-9,]+) events, .* ([0-9]+) data breaks`)

// checkUpgradeWithData upgrades a collector and a guard while a program runs behind the guard, and the server of the spans is down. Each
// event that the program sent must arrive as a part of a span, and the new version must show the call trees of the older one.
func checkUpgradeWithData(t *testing.T, s *system, packages string) {
	// 1. The older version runs, and a program behind its guard.
	s.install(t, older(t, packages, "otelcol-callbraid"))
	s.install(t, older(t, packages, "bytefrog-guard"))
	var of backend
	server, _ := kit.ServeOTLP(t, kit.Accept{Traces: of.accept})
	e := s.configure(t)
	s.write(t, addresses, e.configuration())
	const more = "/srv/queued.yaml"
	s.write(t, more, queued(server))
	shipped := s.read(t, options)
	s.write(t, options, strings.Replace(shipped, addresses+`"`, addresses+" --config="+more+`"`, 1))
	defer s.write(t, options, shipped)
	u := s.unit(t, "otelcol-callbraid")
	old := s.startUnit(t, u)
	e.awaitHealthy(t, old)
	listen := testkit.Address(t)
	unit := s.unit(t, "bytefrog-guard")
	unit["Environment"] = []string{"COLLECTOR=" + e.bytefrog, "GUARD_OPTIONS=--listen=" + listen + " --metrics=" + testkit.Address(t)}
	guard := s.startUnit(t, unit)
	testkit.Eventually(t, "the guard listens", func() (bool, string) { return strings.Contains(guard.said(t), listen), guard.said(t) })
	agent := s.start(t, program{user: "nobody", group: "nogroup", command: []string{
		"agentsim", "bytefrog", "load", "--endpoint", listen, "--rate", "4000", "--functions", "20", "--depth", "6",
	}})

	// 2. Spans wait on the disk, and the call trees have calls, also that of the current hour.
	testkit.Eventually(t, "the server refuses spans", func() (bool, string) {
		of.mu.Lock()
		defer of.mu.Unlock()
		return of.refused > 0, old.said(t)
	})
	service := "http://" + e.flameGraph + "/services/unknown_service:java/"
	tree := func(of string) string { return e.page(t, of+"profile.folded") }
	testkit.Eventually(t, "a call tree", func() (bool, string) { text := tree(service); return strings.Contains(text, ";"), text })

	// 3. Both packages are upgraded, which restarts the collector, and not the guard.
	s.pretend(t, "active")
	said := s.install(t, only(t, packages, "otelcol-callbraid_*_amd64.deb"))
	require.Contains(t, s.orders(t), "try-restart otelcol-callbraid.service", said)
	before := foldedTime(tree(service))
	old.stop(t)
	current := s.startUnit(t, s.unit(t, "otelcol-callbraid"))
	e.awaitHealthy(t, current)
	s.pretend(t, "active")
	assert.Contains(t, s.install(t, only(t, packages, "bytefrog-guard_*_amd64.deb")), "continues in its old version")

	// 4. The program is traced by the new collector, then ends in order.
	testkit.Eventually(t, "calls of the new run", func() (bool, string) {
		return e.counter(t, "otelcol_connector_stack_pairing_spans") > 0, current.said(t)
	})
	testkit.Eventually(t, "more calls in the call tree", func() (bool, string) { return foldedTime(tree(service)) > before, current.said(t) })
	hours := int64(0)
	for _, link := range hourLink.FindAllStringSubmatch(e.page(t, service), -1) {
		hours += foldedTime(tree(service + link[1]))
	}
	assert.GreaterOrEqual(t, hours, before, "the links to hours lead to the calls of before")
	assert.Contains(t, current.said(t), "Call trees of the last collector are restored")
	require.NoError(t, agent.command.Process.Signal(os.Interrupt))
	require.NoError(t, <-agent.ended, agent.said(t))
	report := sent.FindStringSubmatch(agent.said(t))
	require.NotNil(t, report, agent.said(t))
	want, err := strconv.Atoi(strings.ReplaceAll(report[1], ",", ""))
	require.NoError(t, err)
	assert.Equal(t, "1", report[2], "one break: the restart")

	// 5. The server is up again, and has all spans: those of the old queue too.
	of.mu.Lock()
	of.open = true
	of.mu.Unlock()
	testkit.Eventually(t, "spans of all events", func() (bool, string) {
		orphans := e.counter(t, "otelcol_connector_stack_pairing_orphans")
		got := of.events(orphans)
		return got == want, fmt.Sprintf("%d of %d events, %d orphans\n%s", got, want, orphans, current.said(t))
	})
	guard.stop(t)
	current.stop(t)
	assert.Greater(t, of.truncated, 0, "calls were open at the restart")
}

// hourLink is a link of the page of a service to an hour.
var hourLink = regexp.MustCompile(`/(at/\d{4}-\d\d-\d\dT\d\dZ/)"`)

// stackTime is the time at the end of a folded stack.
var stackTime = regexp.MustCompile(`(?m)^.* ([0-9]+)$`)

// foldedTime is the sum of the times of folded stacks. Other texts, such as errors, have none.
func foldedTime(folded string) (sum int64) {
	for _, found := range stackTime.FindAllStringSubmatch(folded, -1) {
		value, err := strconv.ParseInt(found[1], 10, 64)
		if err == nil {
			sum += value
		}
	}
	return sum
}

// page returns a page, or its error as text.
func (e endpoints) page(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close() // only read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// counter returns the sum of a collector's own counter. A counter without a value is not on the page.
func (e endpoints) counter(t *testing.T, name string) (sum int) {
	t.Helper()
	for line := range strings.Lines(e.page(t, "http://"+e.own+"/metrics")) {
		if !strings.HasPrefix(line, name) || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		require.NoError(t, err, line)
		sum += int(value)
	}
	return sum
}
