// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"maps"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const directory = "/etc/otelcol-callbraid"

// closed is the owner and the mode of files that may have secrets. left is that of an older
// package.
var (
	closed = map[string]string{
		directory: "root:otelcol-callbraid:750", configuration: "root:otelcol-callbraid:640", options: "root:root:600",
	}
	left = map[string]string{directory: "root:root:755", configuration: "root:root:644", options: "root:root:644"}
)

// owners are those of the paths that may have secrets, as USER:GROUP:MODE.
func (s *system) owners(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for path := range closed {
		all[path] = strings.TrimSpace(s.run(t, "stat", "-c", "%U:%G:%a", path))
	}
	return all
}

func (s *system) own(t *testing.T, owners map[string]string) {
	t.Helper()
	for path, owner := range owners {
		at := strings.LastIndex(owner, ":")
		s.run(t, "chown", owner[:at], path)
		s.run(t, "chmod", owner[at+1:], path)
	}
}

// reads reports whether a user of a system may read a file.
func (s *system) reads(user, path string) bool {
	return exec.Command("chroot", "--userspec="+user, s.root, "cat", path).Run() == nil
}

// checkReaders checks the users that can read the files of an installation.
func checkReaders(t *testing.T, s *system) {
	assert.Equal(t, closed, s.owners(t))
	assert.True(t, s.reads("otelcol-callbraid:otelcol-callbraid", configuration), "the service reads its configuration")
	assert.False(t, s.reads("otelcol-callbraid:otelcol-callbraid", options), "systemd alone reads the service's environment")
	for _, path := range []string{configuration, options} {
		assert.False(t, s.reads("nobody:nogroup", path), path)
	}
	// Files of an administrator are not readable for every user either, with any mode.
	s.write(t, directory+"/token", "secret")
	assert.False(t, s.reads("nobody:nogroup", directory+"/token"))
	assert.True(t, s.reads("otelcol-callbraid:otelcol-callbraid", directory+"/token"))
	s.run(t, "rm", directory+"/token")
	// The guard has no file of its own that may have secrets: systemd hands it its key.
	assert.NotContains(t, s.run(t, "dpkg", "--listfiles", "bytefrog-guard"), "/etc")
}

// checkClosing has an upgrade meet files of different owners and modes.
func checkClosing(t *testing.T, s *system, file string) {
	change := func(owners map[string]string, path, owner string) map[string]string {
		changed := maps.Clone(owners)
		changed[path] = owner
		return changed
	}
	t.Run("dpkg upgrades an older package", func(t *testing.T) {
		s.own(t, left)
		s.pretend(t, "active")
		s.install(t, file)
		assert.Equal(t, closed, s.owners(t))
	})
	for _, c := range []struct {
		name         string
		before, want map[string]string
		// service is the argument of pretend. It is followed by a file whose mode dpkg must not
		// change.
		service  []string
		override string
		says     string
	}{
		{name: "an older package", before: left, want: closed},
		{name: "this package", before: closed, want: closed},
		{name: "a stricter mode stays", before: change(closed, configuration, "root:root:600"), want: change(closed, configuration, "root:root:600")},
		{name: "another group stays", before: change(closed, configuration, "root:daemon:644"), want: change(closed, configuration, "root:daemon:644")},
		{name: "another owner stays", before: change(closed, options, "daemon:root:644"), want: change(closed, options, "daemon:root:644")},
		{
			name: "a mode of dpkg-statoverride stays", before: left, override: configuration,
			want: change(closed, configuration, "root:root:644"),
		},
		{
			name: "a service with another user reads by its group", before: left, want: closed,
			service: []string{"user=daemon"},
		},
		{name: "a service of root reads all", before: left, want: closed, service: []string{"user=root", "group=root"}},
		{
			name: "a service that would not read its files any more", before: left, want: left,
			service: []string{"user=daemon", "group=daemon"}, says: "all users can read " + configuration,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.own(t, c.before)
			s.pretend(t, c.service...)
			if c.override != "" {
				s.run(t, "dpkg-statoverride", "--add", "root", "root", "0644", c.override)
				defer s.run(t, "dpkg-statoverride", "--remove", c.override)
			}
			said := s.script(t, "otelcol-callbraid.postinst", "configure", "0.1")
			assert.Equal(t, c.want, s.owners(t))
			assert.Contains(t, said, c.says)
			if c.says == "" {
				assert.Empty(t, said)
			}
		})
	}
	s.own(t, closed)
}
