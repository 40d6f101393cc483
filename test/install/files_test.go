// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// units are the checked properties of each unit, beyond those that a running unit shows. Everything
// that prevents an orderly end hangs programs that are traced by Bytefrog.
var units = map[string]struct {
	settings map[string]string
	// The kinds of sockets that it opens.
	sockets string
	// The longest time of an orderly end.
	stop time.Duration
}{
	"otelcol-callbraid": {
		settings: map[string]string{
			"User": "otelcol-callbraid", "KillSignal": "SIGTERM", "Restart": "on-failure", "RestartSec": "5",
			"SystemCallFilter": "@system-service", "SystemCallErrorNumber": "EPERM",
		},
		sockets: "AF_INET AF_INET6 AF_UNIX AF_NETLINK",
		stop:    90 * time.Second, // receivers, held spans and exporters' queues, one after the other
	},
	"bytefrog-guard": {
		settings: map[string]string{
			"DynamicUser": "yes", "KillSignal": "SIGTERM", "Restart": "always", "RestartSec": "1", "StartLimitIntervalSec": "0",
			"OOMScoreAdjust": "-900", "SystemCallFilter": "@system-service", "SystemCallErrorNumber": "EPERM",
		},
		sockets: "AF_INET AF_INET6",
		stop:    60 * time.Second, // --shutdown-timeout, which an administrator may raise
	},
}

// exposure is the largest exposure of a unit by systemd's own measure, of 100: below its "medium".
const exposure = "25"

func checkUnits(t *testing.T, s *system) {
	want(t, "systemd-analyze", "systemd")
	for name, wanted := range units {
		t.Run(name, func(t *testing.T) {
			// systemd looks for the programs in this system, where they are not.
			text := strings.ReplaceAll(s.read(t, unitPath(name)), "=/usr/bin/"+name, "=/bin/true")
			copied := filepath.Join(t.TempDir(), name+".service")
			require.NoError(t, os.WriteFile(copied, []byte(text), 0o644))
			assert.Empty(t, run(t, exec.Command("systemd-analyze", "verify", "--man=no", copied)))
			run(t, exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold="+exposure, copied))

			u := s.unit(t, name)
			for key, value := range wanted.settings {
				assert.Equal(t, value, u.last(key), key)
			}
			assert.ElementsMatch(t, strings.Fields(wanted.sockets), strings.Fields(u.last("RestrictAddressFamilies")))
			seconds, err := strconv.Atoi(u.last("TimeoutStopSec"))
			require.NoError(t, err)
			assert.GreaterOrEqual(t, time.Duration(seconds)*time.Second, wanted.stop)
		})
	}
}

// portFiles are those of a configuration that has lttng_jul write them.
var portFiles = regexp.MustCompile(`port_files: \[(\S+)\]`)

// checkPortFiles finds that the unit lets the shipped configurations write where they want to.
func checkPortFiles(t *testing.T, s *system) {
	may := strings.Fields(s.unit(t, "otelcol-callbraid").last("ReadWritePaths"))
	found := 0
	shipped, err := filepath.Glob(s.path("/usr/share/otelcol-callbraid/config/*.yaml"))
	require.NoError(t, err)
	for _, file := range shipped {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range portFiles.FindAllStringSubmatch(string(text), -1) {
			found++
			directory := path.Dir(strings.Replace(match[1], "/var/run/", "/run/", 1)) // a link
			assert.Contains(t, may, "-"+directory, file)
		}
	}
	assert.Equal(t, 3, found)
}

// dated is the head of a man page that cobra wrote, with its date.
var dated = regexp.MustCompile(`(?m)^\.TH "[^"]+" "1" "([^"]*)"`)

// checkManPages finds that man pages are as old as everything else that was packed.
func checkManPages(t *testing.T, s *system) {
	found := 0
	for _, name := range []string{"agentctl", "agentsim", "bytefrog-guard"} {
		pages, err := filepath.Glob(s.path("/usr/share/man/man1/" + name + "*.1"))
		require.NoError(t, err)
		for _, page := range pages {
			info, err := os.Stat(page)
			require.NoError(t, err)
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			head := dated.FindSubmatch(text)
			require.NotNil(t, head, page)
			assert.Equal(t, info.ModTime().UTC().Format("Jan 2006"), string(head[1]), page)
			found++
		}
	}
	assert.Greater(t, found, 3)
}

// checkCompletions lets bash load the completions of each program, and complete a command. zsh and fish are not in the system.
func checkCompletions(t *testing.T, s *system) {
	for program, c := range map[string]struct{ begun, want string }{
		"agentctl": {"wat", "watch"}, "agentsim": {"byte", "bytefrog"}, "bytefrog-guard": {"--lis", "--listen"},
	} {
		file := "/usr/share/bash-completion/completions/" + program
		// __complete is the command that a completion runs to get the words.
		assert.Contains(t, s.run(t, "bash", "-c", "source "+file+" && complete -p "+program+" && "+program+" __complete "+c.begun), c.want, program)
		assert.Contains(t, s.read(t, "/usr/share/zsh/vendor-completions/_"+program), "#compdef "+program)
		assert.Contains(t, s.read(t, "/usr/share/fish/vendor_completions.d/"+program+".fish"), "complete -c "+program)
	}
	assert.True(t, json.Valid([]byte(s.read(t, "/usr/share/otelcol-callbraid/config/schema.json"))))
}
