// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
)

func TestTheDebianPackagesRunInACleanSystem(t *testing.T) {
	t.Parallel()
	packages := dist(t)
	collectorPackage := only(t, packages, "otelcol-callbraid_*_amd64.deb")
	s := cleanSystem(t)
	s.pretendSystemd(t)
	s.installByReadme(t, collectorPackage)
	assert.Equal(t, installed, s.orders(t))
	s.pretend(t)
	s.install(t, only(t, packages, "bytefrog-guard_*_amd64.deb"))
	assert.Equal(t, leftAlone, s.orders(t))

	t.Run("the units are valid for systemd, and remove unnecessary rights", func(t *testing.T) { checkUnits(t, s) })
	t.Run("the service alone reads its files", func(t *testing.T) { checkReaders(t, s) })
	t.Run("an upgrade closes files that an older package left open, and no others", func(t *testing.T) { checkClosing(t, s, collectorPackage) })
	t.Run("the unit lets port files be written", func(t *testing.T) { checkPortFiles(t, s) })
	t.Run("man pages have the date of all files", func(t *testing.T) { checkManPages(t, s) })
	t.Run("shells and editors find completions and the schema", func(t *testing.T) { checkCompletions(t, s) })
	t.Run("dpkg does not replace a changed configuration", func(t *testing.T) { checkUpgrade(t, s, collectorPackage) })
	t.Run("systemd receives the commands of an installation and an upgrade", func(t *testing.T) { checkChanges(t, s) })
	t.Run("systemd receives the commands of a removal", func(t *testing.T) { checkRemoval(t, s) })
	t.Run("the guard goes on when it is upgraded", func(t *testing.T) { checkGuardContinues(t, s) })
	t.Run("the collector turns a program's calls into spans", func(t *testing.T) {
		e := s.configure(t)
		collector := s.startUnit(t, s.unit(t, "otelcol-callbraid"))
		e.awaitHealthy(t, collector)
		s.run(t, "agentsim", "bytefrog", "load", "--endpoint", e.bytefrog, "--events", "1000")
		collector.stop(t)
		spans := s.read(t, "/var/lib/otelcol-callbraid/spans.json")
		assert.Equal(t, callsOfLoad, strings.Count(spans, `"spanId"`))
	})
	t.Run("the guard stands between", func(t *testing.T) {
		e := s.configure(t)
		collector := s.startUnit(t, s.unit(t, "otelcol-callbraid"))
		e.awaitHealthy(t, collector)
		listen := testkit.Address(t)
		of := s.unit(t, "bytefrog-guard")
		of["Environment"] = []string{"COLLECTOR=" + e.bytefrog, "GUARD_OPTIONS=--listen=" + listen + " --metrics=" + testkit.Address(t)}
		guard := s.startUnit(t, of)
		testkit.Eventually(t, "the guard listens", func() (bool, string) {
			said := guard.said(t)
			return strings.Contains(said, listen), said
		})
		s.run(t, "agentsim", "bytefrog", "load", "--endpoint", listen, "--events", "1000")
		guard.stop(t)
		collector.stop(t)
		spans := s.read(t, "/var/lib/otelcol-callbraid/spans.json")
		assert.Equal(t, 2*callsOfLoad, strings.Count(spans, `"spanId"`))
	})
	t.Run("a reload accepts a new configuration, and not one with an error", func(t *testing.T) { checkReload(t, s) })
	t.Run("an upgrade loses nothing while a program runs", func(t *testing.T) { checkUpgradeWithData(t, s, packages) })
	t.Run("every program prints the packages' version", func(t *testing.T) {
		for _, name := range programs {
			version := strings.Fields(s.run(t, name, "--version"))[2]
			assert.Contains(t, only(t, packages, "callbraid_*_linux_amd64.tar.gz"), "callbraid_"+version+"_linux", name)
			assert.FileExists(t, s.path("/usr/share/man/man1/"+name+".1"))
		}
	})
	t.Run("a purge removes all files", func(t *testing.T) { checkGone(t, s) })
}

// checkReload lets a running collector read its configuration again: first one with an error, for
// which the reload must send no signal, because the collector would end.
func checkReload(t *testing.T, s *system) {
	u := s.unit(t, "otelcol-callbraid")
	before := s.configure(t)
	collector := s.startUnit(t, u)
	before.awaitHealthy(t, collector)

	shipped := s.read(t, configuration)
	s.write(t, configuration, shipped+"no_such_section:\n")
	said, err := s.reload(t, u, collector)
	require.Error(t, err)
	assert.Contains(t, said, "no_such_section")
	s.run(t, "agentsim", "bytefrog", "load", "--endpoint", before.bytefrog, "--events", "1000")
	assert.NotContains(t, collector.said(t), "hangup")

	s.write(t, configuration, shipped)
	after := s.configure(t)
	said, err = s.reload(t, u, collector)
	require.NoError(t, err, said)
	after.awaitHealthy(t, collector)
	assert.Contains(t, collector.said(t), "hangup")
	collector.stop(t)
}

// query returns a property of the RPM package of a name.
func query(t *testing.T, packages, name, format string) string {
	t.Helper()
	return run(t, exec.Command("rpm", "--query", "--queryformat", format, "--package", only(t, packages, name+"-*.x86_64.rpm")))
}

func TestTheRPMPackagesHaveTheFilesOfTheDebianOnes(t *testing.T) {
	packages := dist(t)
	want(t, "rpm", "rpm")
	for _, name := range []string{"otelcol-callbraid", "bytefrog-guard"} {
		deb := only(t, packages, name+"_*_amd64.deb")
		var inRPM []string
		for line := range strings.Lines(query(t, packages, name, "[%{FILEMODES:perms} %{FILENAMES}\n]")) {
			if fields := strings.Fields(line); !strings.HasPrefix(fields[0], "d") {
				// Debian's zsh looks for completions in another directory.
				inRPM = append(inRPM, strings.Replace(fields[1], "/zsh/site-functions/", "/zsh/vendor-completions/", 1))
			}
		}
		var inDeb []string
		for line := range strings.Lines(run(t, exec.Command("dpkg-deb", "--contents", deb))) {
			if fields := strings.Fields(line); !strings.HasSuffix(fields[5], "/") {
				inDeb = append(inDeb, strings.TrimPrefix(fields[5], "."))
			}
		}
		assert.NotEmpty(t, inDeb)
		assert.ElementsMatch(t, inDeb, inRPM)
		for inDeb, inRPM := range map[string]string{"postinst": "%{POSTIN}", "prerm": "%{PREUN}", "postrm": "%{POSTUN}"} {
			script := run(t, exec.Command("dpkg-deb", "--info", deb, inDeb))
			assert.Equal(t, strings.TrimSpace(script), strings.TrimSpace(query(t, packages, name, inRPM)), "%s: %s", name, inDeb)
		}
		assert.Equal(t, "callbraid", query(t, packages, name, "%{BUILDHOST}"), "nothing of the machine that packed it")
	}
	assert.Contains(t, query(t, packages, "otelcol-callbraid", "%{PREIN}"), "/run/otelcol-callbraid.new")
	assert.Contains(t, query(t, packages, "otelcol-callbraid", "[%{REQUIRES}\n]"), "useradd")
	depends := run(t, exec.Command("dpkg-deb", "--field", only(t, packages, "otelcol-callbraid_*_amd64.deb"), "Depends"))
	assert.Equal(t, "passwd\n", depends)
	depends = run(t, exec.Command("dpkg-deb", "--field", only(t, packages, "otelcol-callbraid_*_amd64.deb"), "Pre-Depends"))
	assert.Equal(t, "passwd\n", depends, "the script that runs before files are unpacked makes the user that they belong to")
	owners := query(t, packages, "otelcol-callbraid", "[%{FILENAMES} %{FILEUSERNAME}:%{FILEGROUPNAME}:%{FILEMODES:octal}\n]")
	for path, owner := range closed {
		user, mode := owner[:strings.LastIndex(owner, ":")], owner[strings.LastIndex(owner, ":")+1:]
		assert.Regexp(t, "(?m)^"+path+" "+user+":[0-9]+0"+mode+"$", owners)
	}
}
