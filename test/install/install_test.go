// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/testbed"
)

// callsOfLoad is how many calls `agentsim bytefrog load --events 1000` makes by its default
// seed; 60 of them are not over at the end.
const callsOfLoad = 530

// endpoints are the shipped configuration's, at addresses that are free on this machine.
type endpoints struct {
	health, bytefrog string
	arguments        []string
}

func freeEndpoints(t *testing.T) endpoints {
	t.Helper()
	e := endpoints{health: testbed.Address(t), bytefrog: testbed.Address(t)}
	_, metrics, _ := strings.Cut(testbed.Address(t), ":")
	e.arguments = []string{
		"--set=extensions.health_check.endpoint=" + e.health,
		"--set=receivers.bytefrog.endpoint=" + e.bytefrog,
		"--set=exporters.prometheus.endpoint=" + testbed.Address(t),
		"--set=exporters.flame_graph.endpoint=" + testbed.Address(t),
		"--set=service.telemetry.metrics.readers=[{pull: {exporter: {prometheus: {host: 127.0.0.1, port: " + metrics + "}}}}]",
	}
	return e
}

// awaitHealthy waits until a collector says of itself that it is well.
func (e endpoints) awaitHealthy(t *testing.T, said func() string) {
	t.Helper()
	testbed.Eventually(t, "the collector is healthy", func() (bool, string) {
		response, err := http.Get("http://" + e.health)
		if err != nil {
			return false, err.Error() + "\n" + said()
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
}

func TestTheDebianPackagesRunInACleanSystem(t *testing.T) {
	packages := dist(t)
	s := cleanSystem(t)
	s.install(t, only(t, packages, "otelcol-callbraid_*_amd64.deb"))
	s.install(t, only(t, packages, "bytefrog-guard_*_amd64.deb"))

	t.Run("the units are what systemd understands", func(t *testing.T) {
		want(t, "systemd-analyze", "systemd")
		// It looks for the programs in this system, where they are not.
		for _, name := range []string{"otelcol-callbraid", "bytefrog-guard"} {
			text := strings.ReplaceAll(s.read(t, "/usr/lib/systemd/system/"+name+".service"), "ExecStart=/usr/bin/"+name, "ExecStart=/bin/true")
			copied := filepath.Join(t.TempDir(), name+".service")
			require.NoError(t, os.WriteFile(copied, []byte(text), 0o644))
			assert.Empty(t, run(t, exec.Command("systemd-analyze", "verify", "--man=no", copied)))
		}
	})
	t.Run("the collector turns a program's calls into spans", func(t *testing.T) {
		u := s.unit(t, "otelcol-callbraid.service")
		e := freeEndpoints(t)
		collector := s.start(t, u, s.environment(t, u["EnvironmentFile"]), e.arguments...)
		e.awaitHealthy(t, func() string { return collector.said(t) })
		s.run(t, "agentsim", "bytefrog", "load", "--endpoint", e.bytefrog, "--events", "1000")
		collector.stop(t)
		spans := s.read(t, "/var/lib/otelcol-callbraid/spans.json")
		assert.Equal(t, callsOfLoad, strings.Count(spans, `"spanId"`))
	})
	t.Run("the guard stands between", func(t *testing.T) {
		u := s.unit(t, "otelcol-callbraid.service")
		e := freeEndpoints(t)
		collector := s.start(t, u, s.environment(t, u["EnvironmentFile"]), e.arguments...)
		e.awaitHealthy(t, func() string { return collector.said(t) })
		listen := testbed.Address(t)
		of := s.unit(t, "bytefrog-guard.service")
		of["User"], of["Group"] = "nobody", "nogroup" // systemd makes one for it
		guard := s.start(t, of, map[string]string{"COLLECTOR": e.bytefrog}, "--listen="+listen, "--metrics="+testbed.Address(t))
		testbed.Eventually(t, "the guard listens", func() (bool, string) {
			said := guard.said(t)
			return strings.Contains(said, listen), said
		})
		s.run(t, "agentsim", "bytefrog", "load", "--endpoint", listen, "--events", "1000")
		guard.stop(t)
		collector.stop(t)
		spans := s.read(t, "/var/lib/otelcol-callbraid/spans.json")
		assert.Equal(t, 2*callsOfLoad, strings.Count(spans, `"spanId"`))
	})
	t.Run("every program says the packages' version", func(t *testing.T) {
		for _, name := range []string{"otelcol-callbraid", "agentctl", "agentsim", "bytefrog-guard"} {
			version := strings.Fields(s.run(t, name, "--version"))[2]
			assert.Contains(t, only(t, packages, "callbraid_*_linux_amd64.tar.gz"), "callbraid_"+version+"_linux", name)
			assert.FileExists(t, s.path("/usr/share/man/man1/"+name+".1"))
		}
	})
	t.Run("what is purged is gone", func(t *testing.T) {
		s.run(t, "dpkg", "--purge", "otelcol-callbraid", "bytefrog-guard")
		for _, path := range []string{"/usr/bin/otelcol-callbraid", "/usr/bin/bytefrog-guard", "/etc/otelcol-callbraid", "/etc/default/otelcol-callbraid", "/var/lib/otelcol-callbraid"} {
			assert.NoFileExists(t, s.path(path))
			assert.NoDirExists(t, s.path(path))
		}
	})
}

func TestTheRPMPackagesHaveWhatTheDebianOnesHave(t *testing.T) {
	packages := dist(t)
	want(t, "rpm", "rpm")
	for _, name := range []string{"otelcol-callbraid", "bytefrog-guard"} {
		inRPM := strings.Fields(run(t, exec.Command("rpm", "--query", "--list", "--package", only(t, packages, name+"-*.x86_64.rpm"))))
		var inDeb []string
		for line := range strings.Lines(run(t, exec.Command("dpkg-deb", "--contents", only(t, packages, name+"_*_amd64.deb")))) {
			if fields := strings.Fields(line); !strings.HasSuffix(fields[5], "/") {
				inDeb = append(inDeb, strings.TrimPrefix(fields[5], "."))
			}
		}
		assert.NotEmpty(t, inDeb)
		assert.ElementsMatch(t, inDeb, inRPM)
	}
}

func TestTheChecksumsAreThoseOfTheFiles(t *testing.T) {
	packages := dist(t)
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = packages
	assert.Equal(t, 6, strings.Count(run(t, check), ": OK\n"))
}

func TestTheBillOfMaterialsNamesWhatIsCompiledIn(t *testing.T) {
	text, err := os.ReadFile(only(t, dist(t), "callbraid_*_linux_amd64.cdx.json"))
	require.NoError(t, err)
	var bom struct {
		BOMFormat    string
		Components   []struct{ Name, Version, PURL string }
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	require.NoError(t, json.Unmarshal(text, &bom))
	assert.Equal(t, "CycloneDX", bom.BOMFormat)
	byPURL := map[string]string{}
	for _, c := range bom.Components {
		byPURL[c.PURL] = c.Name
	}
	of := map[string][]string{}
	for _, d := range bom.Dependencies {
		of[d.Ref] = d.DependsOn
	}
	for _, program := range []string{"otelcol-callbraid", "agentctl", "agentsim", "bytefrog-guard"} {
		assert.NotEmpty(t, of[program])
		for _, purl := range of[program] {
			assert.Contains(t, byPURL, purl, program)
		}
	}
	assert.Contains(t, of["otelcol-callbraid"], "pkg:golang/go.opentelemetry.io/collector/processor/batchprocessor@v0.159.0")
	assert.NotContains(t, of["agentctl"], "pkg:golang/go.opentelemetry.io/collector/processor/batchprocessor@v0.159.0")
}

func TestTheImageRuns(t *testing.T) {
	packages := dist(t)
	want(t, "buildah", "buildah")
	state := t.TempDir()
	buildah := func(command string, arguments ...string) *exec.Cmd {
		c := exec.Command("buildah", append([]string{"--storage-driver=vfs", "--root=" + state + "/root", "--runroot=" + state + "/run", command}, arguments...)...)
		c.Dir = filepath.Dir(packages)
		return c
	}
	run(t, buildah("build", "--isolation=chroot", "--file=packaging/Dockerfile", "--tag=otelcol-callbraid", "."))
	container := strings.TrimSpace(run(t, buildah("from", "otelcol-callbraid")))
	root := strings.TrimSpace(run(t, buildah("mount", container)))
	s := &system{root: root}
	e := freeEndpoints(t)
	collector := s.start(t, unit{
		"User": "65532", "Group": "65532", "ExecStart": "/usr/bin/otelcol-callbraid --config=/etc/otelcol-callbraid/config.yaml",
	}, map[string]string{"CALLBRAID_DATA": "/var/lib/otelcol-callbraid"}, e.arguments...)
	e.awaitHealthy(t, func() string { return collector.said(t) })
	run(t, exec.Command(testbed.AgentSim(t), "bytefrog", "load", "--endpoint", e.bytefrog, "--events", "1000"))
	collector.stop(t)
	assert.Equal(t, callsOfLoad, strings.Count(s.read(t, "/var/lib/otelcol-callbraid/spans.json"), `"spanId"`))
	run(t, buildah("umount", container))
}
