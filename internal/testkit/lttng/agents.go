// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Paths in Debian of the additional files for agents.
const (
	python        = "/usr/bin/python3" // the one of Debian, because others do not find its packages
	pythonAgent   = "/usr/lib/python3/dist-packages/lttngust/agent.py"
	pythonLibrary = "/usr/lib/*/liblttng-ust-python-agent.so.1"
)

// RequireAgents is Require for programs with LTTng's log agents, which need no daemons.
func RequireAgents(t testing.TB) {
	t.Helper()
	for _, command := range []string{"javac", "java", "unshare", "setpriv"} {
		if _, err := exec.LookPath(command); err != nil {
			missing(t, command+" in PATH")
		}
	}
	for _, pattern := range []string{javaLibrary, javaCommon, javaAgent, javaLog4jAgent, javaLog4j, python, pythonAgent, pythonLibrary} {
		file(t, pattern)
	}
	if said, err := NewHome(t).agentCommand("true").CombinedOutput(); err != nil {
		missing(t, fmt.Sprintf("/var/run/lttng of the test's own (%v: %s), which needs root or user namespaces,", err, bytes.TrimSpace(said)))
	}
}

// ownSystem has a shell see a directory as /var/run/lttng, and become the command that
// follows.
const ownSystem = `mount -t tmpfs tmpfs /var/run/ && mkdir /var/run/lttng && mount --bind "$0" /var/run/lttng && exec "$@"`

// agentCommand returns a command with an agent in it, which finds its daemons by PortFile and SystemPortFile.
func (h *Home) agentCommand(name string, arguments ...string) *exec.Cmd {
	shell := []string{"--mount"}
	become := []string{}
	if h.user == nil {
		shell = append(shell, "--map-root-user") // of a namespace, so that it may mount
	} else {
		become = append(become, "setpriv", "--clear-groups",
			"--reuid="+strconv.Itoa(int(h.user.Uid)), "--regid="+strconv.Itoa(int(h.user.Gid)))
	}
	shell = append(shell, "sh", "-c", ownSystem, filepath.Join(h.Dir, systemDir))
	command := h.command("unshare", append(append(append(shell, become...), name), arguments...)...)
	command.SysProcAttr.Credential = nil // setpriv does it, after the mounts
	return command
}

// LaunchLoggers starts a program with LTTng's agent for a logging library, jul, log4j or python. It executes the
// commands of Ask. path is a class from BuildJava, or a file in Python. Ready waits until the program's first handler
// exists.
func (h *Home) LaunchLoggers(t testing.TB, path, library string) *Program {
	t.Helper()
	if library == "python" {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(h.Dir, filepath.Base(path)) // the home's user can read it there
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := h.program(t, path)
	if library == "python" {
		p.launch(t, h.agentCommand(python, "-u", path))
	} else {
		p.launch(t, h.agentCommand("java", h.javaArguments(t, path, library)...))
	}
	return p
}
