// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// systemctl replaces systemd's: it writes down its commands. Files of its folder describe the
// service: active, its user and group, and broken if commands fail.
const systemctl = `#!/bin/sh
cd /systemctl
case "$*" in
*is-active*) test -e active ;;
show*Group*) cat group ;;
show*) cat user ;;
*) echo "$*" >> orders; test ! -e broken ;;
esac
`

// pretendSystemd has scripts find a systemd that runs.
func (s *system) pretendSystemd(t *testing.T) {
	t.Helper()
	require.NoError(t, os.MkdirAll(s.path("/run/systemd/system"), 0o755))
	s.write(t, "/usr/bin/systemctl", systemctl)
	require.NoError(t, os.Chmod(s.path("/usr/bin/systemctl"), 0o755))
	s.pretend(t)
}

// pretend sets the description of the service: its user, and the given files.
func (s *system) pretend(t *testing.T, files ...string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(s.path("/systemctl")))
	s.write(t, "/systemctl/user", "otelcol-callbraid\n")
	s.write(t, "/systemctl/group", "otelcol-callbraid\n")
	for _, file := range files {
		name, text, _ := strings.Cut(file, "=")
		s.write(t, "/systemctl/"+name, text)
	}
}

// orders are systemd's commands since the last pretend.
func (s *system) orders(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(s.path("/systemctl/orders"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// script runs a script of an installed package, as dpkg or rpm do, and returns its output.
func (s *system) script(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	return run(t, exec.Command("chroot", append([]string{s.root, "/var/lib/dpkg/info/" + name}, arguments...)...))
}
