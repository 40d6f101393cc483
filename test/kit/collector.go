// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/testkit"
)

// Collector is one process of the distribution.
type Collector struct {
	// Dir is a directory of its own, which the configuration can name as
	// ${env:DIR}.
	Dir string

	health, metrics, pprof string

	command *exec.Cmd
	log     *log
	// exited is closed when the process has ended; exit is its result.
	exited chan struct{}
	exit   error
}

// base is the common configuration of every collector in tests.
const base = `
extensions:
  health_check: {endpoint: %q}
  pprof: {endpoint: %q}
service:
  extensions: [health_check, pprof]
  telemetry:
    metrics:
      level: detailed
      readers: [{pull: {exporter: {prometheus: {host: %q, port: %s, without_type_suffix: true, without_units: true}}}}]
    logs: {level: info, encoding: console, disable_stacktrace: true}
`

// Binary is the built distribution. Where there is none, the test is skipped,
// or fails if CALLBRAID_REQUIRE_PEERS is set.
func Binary(t testing.TB) string { return fromEnvironment(t, "CALLBRAID_COLLECTOR") }

// Gateway is the built distribution for several collectors, as Binary is the ordinary one.
func Gateway(t testing.TB) string { return fromEnvironment(t, "CALLBRAID_GATEWAY") }

// AgentSim is the simulator's binary, as Binary is the distribution's.
func AgentSim(t testing.TB) string { return fromEnvironment(t, "CALLBRAID_AGENTSIM") }

// AgentCtl is the binary of the command line that steers agents, as Binary is the
// distribution's.
func AgentCtl(t testing.TB) string { return fromEnvironment(t, "CALLBRAID_AGENTCTL") }

// Guard is the guard's binary, as Binary is the distribution's.
func Guard(t testing.TB) string { return fromEnvironment(t, "CALLBRAID_GUARD") }

// Builder is the OpenTelemetry Collector Builder, as Binary is the distribution.
func Builder(t testing.TB) string { return fromEnvironment(t, "CALLBRAID_BUILDER") }

func fromEnvironment(t testing.TB, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path != "" {
		return path
	}
	missing := variable + " does not name a built binary: run `make test`, which builds it"
	if os.Getenv("CALLBRAID_REQUIRE_PEERS") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// Start starts a collector and waits until it is ready. A configuration with its own health_check
// must listen on ${env:HEALTH}, and one with its own port for the collector's metrics on
// ${env:METRICS_PORT}. At the end of the test the collector is stopped, if the test hasn't done so,
// and the end of its log is shown if the test failed. The environment, as NAME=value, is added to
// the test's own.
func Start(t testing.TB, configuration string, environment ...string) *Collector {
	t.Helper()
	return launch(t, Binary(t), configuration, environment, nil).awaitReady(t)
}

// StartProgram is Start for another distribution, which has to have the extensions
// health_check and pprof, and the file and env providers.
func StartProgram(t testing.TB, binary, configuration string) *Collector {
	t.Helper()
	return launch(t, binary, configuration, nil, nil).awaitReady(t)
}

// StartGateway is Start for the distribution for several collectors. Where hosts is not
// nil, the collector resolves names by it.
func StartGateway(t testing.TB, hosts *Hosts, configuration string, environment ...string) *Collector {
	t.Helper()
	binary := Gateway(t)
	if hosts != nil {
		binary = hosts.seenBy(t, binary)
	}
	return launch(t, binary, configuration, environment, nil).awaitReady(t)
}

// StartMerged is Start with several configurations, which the collector merges in this order.
func StartMerged(t testing.TB, configurations []string, environment ...string) *Collector {
	t.Helper()
	var arguments []string
	dir := t.TempDir()
	for i, configuration := range configurations[1:] {
		file := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, "--config", file)
	}
	return launch(t, Binary(t), configurations[0], environment, arguments).awaitReady(t)
}

// StartGated starts a collector as Start does, with a feature gate that is on.
func StartGated(t testing.TB, gate, configuration string) *Collector {
	t.Helper()
	return launch(t, Binary(t), configuration, nil, []string{"--feature-gates", gate}).awaitReady(t)
}

// awaitReady waits until a started collector is ready and reacts to signals, and returns it. The
// health check answers shortly before: a SIGTERM at that moment ends the process immediately.
func (c *Collector) awaitReady(t testing.TB) *Collector {
	t.Helper()
	testkit.Eventually(t, "the collector is ready", func() (bool, string) {
		select {
		case <-c.exited:
			t.Fatalf("the collector ended at its start: %v\n%s", c.exit, c.log.tail())
		default:
		}
		response, err := client.Get("http://" + c.health)
		if err != nil {
			return false, err.Error()
		}
		response.Body.Close() // its content is not needed
		return response.StatusCode == http.StatusOK, response.Status
	})
	if os.Getenv(lacksPprof) != "" {
		return c
	}
	testkit.Eventually(t, "the collector waits for signals", func() (bool, string) {
		stacks, err := get("http://" + c.pprof + "/debug/pprof/goroutine?debug=2")
		return err == nil && inControlLoop.MatchString(stacks), fmt.Sprintf("%v\n%s", err, stacks)
	})
	return c
}

// inControlLoop matches the stack of a collector in its control loop, where it reads signals.
var inControlLoop = regexp.MustCompile(`(?m)^goroutine \d+ [^\n]*\[select[^\n]*\]:\ngo\.opentelemetry\.io/collector/otelcol\.\(\*Collector\)\.Run\(`)

// client has no connections of its own that stay: they would be open files of
// the collector.
var client = &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}

// StartFails starts a collector that cannot start, and returns its log.
func StartFails(t testing.TB, configuration string) string {
	t.Helper()
	c := launch(t, Binary(t), configuration, nil, nil)
	if c.awaitEnd(t) == nil {
		t.Fatal("expected the collector to fail at its start, got exit code 0")
	}
	return c.log.String()
}

// Run starts a collector that ends by itself with exit code 0, and returns it after its end.
func Run(t testing.TB, configuration string, environment ...string) *Collector {
	t.Helper()
	c := launch(t, Binary(t), configuration, environment, nil)
	if err := c.awaitEnd(t); err != nil {
		t.Fatalf("expected the collector to end with exit code 0, got: %v", err)
	}
	return c
}

// awaitEnd waits until the collector ends by itself, and returns its result.
func (c *Collector) awaitEnd(t testing.TB) error {
	t.Helper()
	select {
	case <-c.exited:
	case <-time.After(testkit.Patience):
		t.Fatalf("expected the collector to end by itself within %v", testkit.Patience)
	}
	return c.exit
}

func launch(t testing.TB, binary, configuration string, environment, arguments []string) *Collector {
	t.Helper()
	c := &Collector{
		Dir: t.TempDir(), health: testkit.Address(t), metrics: testkit.Address(t), pprof: testkit.Address(t),
		log: &log{}, exited: make(chan struct{}),
	}
	host, port, _ := strings.Cut(c.metrics, ":")
	common := fmt.Sprintf(base, c.health, c.pprof, host, port)
	more := withPprof(t, configuration)
	if os.Getenv(lacksPprof) != "" {
		common, configuration, more = ofPprof.ReplaceAllString(common, ""), ofPprof.ReplaceAllString(configuration, ""), ""
	}
	c.command = exec.Command(binary, append([]string{
		"--config", c.write(t, "base.yaml", common),
		"--config", c.write(t, "test.yaml", configuration),
		"--config", c.write(t, "extensions.yaml", more),
	}, arguments...)...)
	c.command.Env = append(append(os.Environ(), "DIR="+c.Dir, "HEALTH="+c.health, "METRICS_PORT="+port), environment...)
	c.command.Stdout, c.command.Stderr = c.log, c.log
	if err := c.command.Start(); err != nil {
		t.Fatalf("start the collector: %v", err)
	}
	go func() {
		c.exit = c.command.Wait()
		close(c.exited)
	}()
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			t.Logf("The collector logged:\n%s", c.log.tail())
		}
	})
	return c
}

// lacksPprof is the environment variable for a distribution without the extension pprof, as of `make before-test`.
const lacksPprof = "CALLBRAID_LACKS_PPROF"

// ofPprof matches the extension pprof in configurations of tests.
var ofPprof = regexp.MustCompile(`(?m)^ *pprof: \{.*\n|, pprof\b`)

// withPprof returns a configuration that adds the extension pprof to those of another one, which
// replace those of base. awaitReady needs it.
func withPprof(t testing.TB, configuration string) string {
	t.Helper()
	var parsed struct {
		Service struct {
			Extensions []string `yaml:"extensions"`
		} `yaml:"service"`
	}
	if err := yaml.Unmarshal([]byte(configuration), &parsed); err != nil {
		return "" // the test is about this error
	}
	extensions := parsed.Service.Extensions
	if len(extensions) == 0 || slices.Contains(extensions, "pprof") {
		return ""
	}
	return fmt.Sprintf("service: {extensions: [%s, pprof]}\n", strings.Join(extensions, ", "))
}

// write writes a file of the collector's and returns its path.
func (c *Collector) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(c.Dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Stop asks the collector to end, as systems do, and waits. It fails the test if that takes longer
// than testkit.Patience or fails. A collector that Terminate has asked may have ended already.
func (c *Collector) Stop(t testing.TB) {
	t.Helper()
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("send %v to the collector: %v", syscall.SIGTERM, err)
	}
	select {
	case <-c.exited:
	case <-time.After(testkit.Patience):
		c.kill()
		t.Fatalf("expected the collector to end within %v of SIGTERM", testkit.Patience)
	}
	if c.exit != nil {
		t.Fatalf("expected the collector to end with exit code 0, got: %v", c.exit)
	}
}

// Terminate asks the collector to end and doesn't wait.
func (c *Collector) Terminate(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGTERM)
}

// Reload asks the collector to shut everything down and start it again with its
// configuration as it is now, and doesn't wait.
func (c *Collector) Reload(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGHUP)
}

// Freeze stops the collector until Thaw.
func (c *Collector) Freeze(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGSTOP)
}

// Thaw continues the collector after Freeze.
func (c *Collector) Thaw(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGCONT)
}

func (c *Collector) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := c.command.Process.Signal(s); err != nil {
		t.Fatalf("send %v to the collector: %v", s, err)
	}
}

// kill ends the collector immediately, unless it has ended.
func (c *Collector) kill() {
	_ = c.command.Process.Kill() // an error means that it has ended
	<-c.exited
}

// Kill ends the collector immediately, like a crash.
func (c *Collector) Kill() { c.kill() }

// Health is the address of the collector's health_check.
func (c *Collector) Health() string { return c.health }

// MetricsURL is where the collector's own metrics are.
func (c *Collector) MetricsURL() string { return "http://" + c.metrics + "/metrics" }

// Exited is closed when the collector's process has ended, which Exit then explains.
func (c *Collector) Exited() <-chan struct{} { return c.exited }

// Exit waits for the end of the process, and returns its result: nil is exit code 0.
func (c *Collector) Exit() error {
	<-c.exited
	return c.exit
}

// Log is the log of the collector until now.
func (c *Collector) Log() string { return c.log.String() }

// CPU is the time that the process used, when it has ended.
func (c *Collector) CPU() time.Duration {
	<-c.exited
	return c.command.ProcessState.UserTime() + c.command.ProcessState.SystemTime()
}

// log is the output of a process.
type log struct{ testkit.Output }

// repeated matches the resource of the collector, which every line of its log has.
var repeated = regexp.MustCompile(`"resource": \{[^}]*\}(, )?`)

// tail is as much of the end as a person reads.
func (l *log) tail() string {
	const most = 16 << 10
	text := repeated.ReplaceAllString(l.String(), "")
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return text
}
