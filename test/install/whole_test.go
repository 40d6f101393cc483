// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit/browser"
	"github.com/callbraid/callbraid/test/kit/dashboard"
	"github.com/callbraid/callbraid/test/kit/jaeger"
	"github.com/callbraid/callbraid/test/kit/page"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

const (
	// wholeSystem is the environment variable of the folder with the clean system, for the test's part in a network of its own.
	wholeSystem = "CALLBRAID_WHOLE_SYSTEM"
	// timesFile is the environment variable of the file for the table of times, and timesSoFar that of its first lines.
	timesFile, timesSoFar = "CALLBRAID_TIMES", "CALLBRAID_TIMES_SO_FAR"
	// shared is the folder of the packages' files.
	shared = "/usr/share/otelcol-callbraid"
	// callsOfMaven are those of testdata/bytefrog/maven.zip.
	callsOfMaven = "442,770"
)

// From the packages alone: a clean Debian without Go gets an earlier version, shows the demo and its picture, the data of a simulated
// program of each tracer, and the dashboards, is upgraded, and is clean again after a removal. After the installation, which downloads
// Debian's packages, all of it runs in a network of its own: with the usual ports, by the commands of the documentation.
func TestThePackagesFromInstallationToRemoval(t *testing.T) {
	packages := dist(t)
	if root := os.Getenv(wholeSystem); root != "" {
		walkThrough(t, packages, &system{root: root})
		return
	}
	t.Parallel()
	want(t, "unshare", "util-linux")
	want(t, "ip", "iproute2")
	// Without these peers, the test is skipped before it begins.
	prometheus.Tool(t)
	browser.Path(t)
	jaeger.Require(t, jaeger.V2)
	took, began := &times{}, time.Now()
	s := cleanSystem(t)
	took.note("make a clean Debian", time.Since(began))
	took.step(t, "install the collector and the guard, version "+olderVersion, func(t *testing.T) {
		s.pretendSystemd(t)
		s.installByReadme(t, older(t, packages, "otelcol-callbraid"))
		s.install(t, older(t, packages, "bytefrog-guard"))
	})
	// The collector reads its own memory in /proc, which a running Debian has.
	inside := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "sh", "-c", `mount -t proc proc "$1/proc" && shift && `+inNetwork,
		"sh", s.root, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	inside.Env = append(os.Environ(), wholeSystem+"="+s.root, timesSoFar+"="+took.String())
	output, err := inside.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "--- PASS: "+t.Name())
}

// times are the steps that are done, and the time that each took.
type times struct{ strings.Builder }

func (r *times) note(step string, took time.Duration) {
	fmt.Fprintf(r, "%6.1f s  %s\n", took.Seconds(), step)
}

// step runs a step. The steps after a failed one make no sense.
func (r *times) step(t *testing.T, name string, do func(*testing.T)) {
	t.Helper()
	began := time.Now()
	require.True(t, t.Run(name, do), name)
	r.note(name, time.Since(began))
}

func walkThrough(t *testing.T, packages string, s *system) {
	took := &times{}
	took.WriteString(os.Getenv(timesSoFar))
	_, err := exec.LookPath(s.path("/usr/local/go/bin/go"))
	require.ErrorIs(t, err, os.ErrNotExist)
	// Every installed Debian has this file.
	s.write(t, "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
	took.step(t, "show the demo", func(t *testing.T) {
		assert.Contains(t, s.run(t, "env", "-u", "CALLBRAID_COLLECTOR", "sh", "-c", "cd /root && agentsim demo"), "calls  "+callsOfMaven)
	})
	took.step(t, "show it with a picture, by the browser of this machine", func(t *testing.T) { checkPicture(t, s) })
	took.step(t, "play a program of each tracer, and query each dashboard", func(t *testing.T) { checkTracers(t, s) })
	took.step(t, "follow docs/install.md beside the service", func(t *testing.T) { checkPage(t, s) })
	took.step(t, "upgrade a running collector, and trace again", func(t *testing.T) { checkWholeUpgrade(t, s, packages) })
	took.step(t, "remove everything", func(t *testing.T) { checkGone(t, s) })
	t.Log("\n" + took.String())
	if file := os.Getenv(timesFile); file != "" {
		require.NoError(t, os.WriteFile(file, []byte(took.String()), 0o644))
	}
}

// checkPicture runs the installed programs outside of their system, because that has no browser.
func checkPicture(t *testing.T, s *system) {
	picture := filepath.Join(t.TempDir(), "demo.png")
	demo := exec.CommandContext(t.Context(), s.path("/usr/bin/agentsim"), "demo")
	demo.Dir = t.TempDir()
	demo.Env = append(demo.Environ(), "DEMO_SCREENSHOT="+picture, "CALLBRAID_COLLECTOR=", "CALLBRAID_DATA=")
	run(t, demo)
	content, err := os.ReadFile(picture)
	require.NoError(t, err)
	drawn, err := png.Decode(bytes.NewReader(content))
	require.NoError(t, err)
	assert.Equal(t, browser.Width, drawn.Bounds().Dx())
}

// simulated matches a command of a simulated tracer in docs/backends.md, and expression one of its expressions for Prometheus.
var (
	simulated  = regexp.MustCompile(`(?m)^bin/(agentsim .+) &$`)
	expression = regexp.MustCompile("(?s)```promql\n(.*?)```")
)

// installedNames makes commands of a checkout those of an installed package (docs/install.md, "Pages that speak of a checkout").
var installedNames = strings.NewReplacer("bin/", "", "testdata/", shared+"/testdata/", "config/", shared+"/config/")

// moreSimulated are for panels that the commands of docs/backends.md leave empty: exceptions, functions in C, a data break.
var moreSimulated = []string{
	"agentsim bytefrog replay testdata/bytefrog/shop.zip",
	"agentsim bytefrog load --events 20000 --rate 4000 --suspends 1",
}

// checkTracers plays the simulated programs of docs/backends.md at the same time, with its configuration.
func checkTracers(t *testing.T, s *system) {
	spans := jaeger.Start(t, jaeger.V2)
	const configuration = "config/jaeger-prometheus.yaml"
	u := s.unit(t, "otelcol-callbraid")
	u["ExecStart"] = []string{"/usr/bin/otelcol-callbraid --config " + installedNames.Replace(configuration) +
		" --set=exporters::otlp_grpc/jaeger::endpoint=" + spans.OTLP}
	collector := s.startUnit(t, u)
	endpoints{health: "localhost:13135"}.awaitHealthy(t, collector)
	numbers := prometheus.Start(t, "localhost:8889")
	own := prometheus.Start(t, "localhost:8887")

	text, err := os.ReadFile("../../docs/backends.md")
	require.NoError(t, err)
	var commands []string
	for _, found := range simulated.FindAllStringSubmatch(string(text), -1) {
		commands = append(commands, found[1])
	}
	require.Len(t, commands, 6, "a simulator of each tracer, two for LTTng")
	played := map[string]*service{}
	for _, command := range append(commands, moreSimulated...) {
		played[command] = s.start(t, program{user: "nobody", group: "nogroup", command: strings.Fields(installedNames.Replace(command))})
	}
	expressions := expression.FindAllStringSubmatch(string(text), -1)
	require.Len(t, expressions, 7, "of the chapter about numbers")
	for _, found := range expressions {
		testkit.Eventually(t, found[1]+" has series", func() (bool, string) {
			n, err := numbers.Series(found[1])
			return n > 0, fmt.Sprint(err)
		})
	}
	dashboard.Check(t, s.path(shared+"/grafana"), numbers, own)
	for command, simulator := range played {
		assert.NoError(t, <-simulator.ended, "%s\n%s", command, simulator.said(t))
	}
	own.Await(t, `count(sum by (receiver) (otelcol_receiver_accepted_spans) > 0)`, tracersWithSpans)
	collector.stop(t)
	services := spans.Services(t)
	assert.Contains(t, services, "unknown_service:java")
	assert.Contains(t, services, "prog.rb")
}

// tracersWithSpans are Bytefrog, LTTng, Rbkit, Greys and Arthas.
const tracersWithSpans = 5

// usual is where the installed service listens.
var usual = endpoints{health: "localhost:13133"}

// checkPage runs the commands of the page about the installation, as root, who needs no sudo.
func checkPage(t *testing.T, s *system) {
	s.write(t, "/usr/local/bin/sudo", "#!/bin/sh\nexec \"$@\"\n")
	require.NoError(t, os.Chmod(s.path("/usr/local/bin/sudo"), 0o755))
	collector := s.startUnit(t, s.unit(t, "otelcol-callbraid"))
	usual.awaitHealthy(t, collector)
	page.FollowInstalled(t, "../..", "install.md", s.root)
	collector.stop(t)
	s.run(t, "find", "/var/lib/otelcol-callbraid", "-type", "f", "-delete")
}

// checkWholeUpgrade upgrades both packages while the service runs, as systemd would restart it.
func checkWholeUpgrade(t *testing.T, s *system, packages string) {
	play := func() {
		s.run(t, "agentsim", "bytefrog", "load", "--events", "1000")
	}
	old := s.startUnit(t, s.unit(t, "otelcol-callbraid"))
	usual.awaitHealthy(t, old)
	play()
	s.pretend(t, "active")
	s.run(t, "rm", "-r", "/srv/dist") // the README's command installs all packages there
	s.installByReadme(t, only(t, packages, "otelcol-callbraid_*_amd64.deb"))
	require.Contains(t, s.orders(t), "try-restart otelcol-callbraid.service")
	s.install(t, only(t, packages, "bytefrog-guard_*_amd64.deb"))
	old.stop(t)
	version := strings.Fields(s.run(t, "otelcol-callbraid", "--version"))[2]
	assert.Contains(t, only(t, packages, "callbraid_*_linux_amd64.tar.gz"), "callbraid_"+version+"_linux")
	current := s.startUnit(t, s.unit(t, "otelcol-callbraid"))
	usual.awaitHealthy(t, current)
	play()
	current.stop(t)
	assert.Equal(t, 2*callsOfLoad, strings.Count(s.read(t, "/var/lib/otelcol-callbraid/spans.json"), `"spanId"`))
}
