// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Commands to systemd when the collector is installed, upgraded, removed.
var (
	installed = []string{"daemon-reload", "enable --now otelcol-callbraid.service"}
	restarted = []string{"daemon-reload", "try-restart otelcol-callbraid.service"}
	leftAlone = []string{"daemon-reload"}
)

// change is an installation or an upgrade, of a service in some state.
type change struct {
	name string
	pre  []string // the arguments of the script before it
	post []string // and the one after it
	// The argument of pretend.
	service []string
	// An error that is added to its configuration, and its mode; 0640 by default.
	mistake string
	mode    os.FileMode
	orders  []string
	says    string
}

var changes = []change{
	{name: "dpkg installs it", pre: []string{"install"}, post: []string{"configure", ""}, orders: installed},
	{name: "rpm installs it", pre: []string{"1"}, post: []string{"1"}, orders: installed},
	{name: "dpkg installs a package that was removed without its configuration", pre: []string{"install", "0.1"}, post: []string{"configure", "0.1"}, orders: installed},
	{name: "dpkg installs it where its unit is masked", pre: []string{"install"}, post: []string{"configure", ""}, service: []string{"broken"}, orders: installed, says: "was not started"},
	{name: "dpkg upgrades one that runs", pre: []string{"upgrade", "0.1"}, post: []string{"configure", "0.1"}, service: []string{"active"}, orders: restarted},
	{name: "rpm upgrades one that runs", pre: []string{"2"}, post: []string{"2"}, service: []string{"active"}, orders: restarted},
	{name: "dpkg upgrades one that is stopped", pre: []string{"upgrade", "0.1"}, post: []string{"configure", "0.1"}, orders: leftAlone},
	{name: "rpm upgrades one that is stopped", pre: []string{"2"}, post: []string{"2"}, orders: leftAlone},
	{
		name: "it can't be restarted", pre: []string{"upgrade", "0.1"}, post: []string{"configure", "0.1"},
		service: []string{"active", "broken"}, orders: restarted, says: "was not restarted",
	},
	{
		name: "the new version doesn't know its configuration", pre: []string{"upgrade", "0.1"}, post: []string{"configure", "0.1"},
		service: []string{"active"}, mistake: "no_such_section:\n", orders: leftAlone, says: "no_such_section",
	},
	{
		name: "its user may not read its configuration", pre: []string{"upgrade", "0.1"}, post: []string{"configure", "0.1"},
		service: []string{"active"}, mode: 0o600, orders: leftAlone, says: "continues in its old version",
	},
	{
		name: "it runs as root, which may", pre: []string{"upgrade", "0.1"}, post: []string{"configure", "0.1"},
		service: []string{"active", "user=root"}, mode: 0o600, orders: restarted,
	},
}

// checkChanges has the collector's scripts make each change in a system where it is installed.
func checkChanges(t *testing.T, s *system) {
	shipped := s.read(t, configuration)
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			s.write(t, configuration, shipped+c.mistake)
			if c.mode != 0 {
				require.NoError(t, os.Chmod(s.path(configuration), c.mode))
			}
			t.Cleanup(func() {
				s.write(t, configuration, shipped)
				require.NoError(t, os.Chmod(s.path(configuration), 0o640))
			})
			s.pretend(t, c.service...)
			said := s.script(t, "otelcol-callbraid.preinst", c.pre...)
			said += s.script(t, "otelcol-callbraid.postinst", c.post...)
			assert.Equal(t, c.orders, s.orders(t))
			if c.says == "" {
				assert.Empty(t, said)
			}
			assert.Contains(t, said, c.says)
		})
	}
	t.Run("scripts leave no mark of an installation", func(t *testing.T) {
		assert.NoFileExists(t, s.path("/run/otelcol-callbraid.new"))
	})
}

// checkRemoval runs the scripts of a removal, and of an upgrade to another version.
func checkRemoval(t *testing.T, s *system) {
	for _, name := range []string{"otelcol-callbraid", "bytefrog-guard"} {
		for _, c := range []struct {
			told   string
			orders []string
		}{
			{"remove", []string{"disable --now " + name + ".service"}},
			{"0", []string{"disable --now " + name + ".service"}},
			{"upgrade", nil},
			{"1", nil},
		} {
			s.pretend(t, "active", "broken")
			s.script(t, name+".prerm", c.told)
			assert.Equal(t, c.orders, s.orders(t), "%s: %s", name, c.told)
		}
		s.pretend(t, "broken")
		s.script(t, name+".postrm", "remove")
		assert.Equal(t, leftAlone, s.orders(t), name)
	}
}

// checkGuardContinues checks that an upgrade does not stop a running guard.
func checkGuardContinues(t *testing.T, s *system) {
	s.pretend(t, "active", "broken")
	said := s.script(t, "bytefrog-guard.postinst", "configure", "0.1")
	assert.Equal(t, leftAlone, s.orders(t))
	assert.Contains(t, said, "continues in its old version")
	s.pretend(t)
	assert.Empty(t, s.script(t, "bytefrog-guard.postinst", "configure", ""))
}

// checkUpgrade installs a package again with dpkg, as an upgrade: changed files stay.
func checkUpgrade(t *testing.T, s *system, file string) {
	shipped := s.read(t, configuration)
	changed := shipped + "# ours\n"
	s.write(t, configuration, changed)
	s.pretend(t, "active")
	s.install(t, file)
	ofTheOld := []string{"daemon-reload"} // its script that runs when its files are gone
	assert.Equal(t, append(ofTheOld, restarted...), s.orders(t))
	assert.Equal(t, changed, s.read(t, configuration))
	s.write(t, configuration, shipped)
}

// checkGone lets dpkg remove the packages, which keeps files that an administrator may have
// changed, and purge them.
func checkGone(t *testing.T, s *system) {
	s.pretend(t, "active")
	s.run(t, "dpkg", "--remove", "otelcol-callbraid", "bytefrog-guard")
	assert.Contains(t, s.orders(t), "disable --now otelcol-callbraid.service")
	assert.Contains(t, s.orders(t), "disable --now bytefrog-guard.service")
	for _, path := range []string{configuration, options, "/var/lib/otelcol-callbraid/spans.json"} {
		assert.FileExists(t, s.path(path))
	}
	assert.NoFileExists(t, s.path("/usr/bin/otelcol-callbraid"))
	s.run(t, "dpkg", "--purge", "otelcol-callbraid", "bytefrog-guard")
	for _, path := range []string{"/usr/bin/bytefrog-guard", "/etc/otelcol-callbraid", "/var/lib/otelcol-callbraid", "/usr/share/otelcol-callbraid"} {
		assert.NoFileExists(t, s.path(path))
		assert.NoDirExists(t, s.path(path))
	}
	assert.False(t, strings.Contains(s.read(t, "/var/lib/dpkg/status"), "callbraid"))
}
