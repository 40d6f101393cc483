// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Where Debian has what agents need beside Java's own.
const (
	python        = "/usr/bin/python3" // that of Debian, whose packages others don't see
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
	for _, pattern := range []string{javaLibrary, javaCommon, javaAgent, python, pythonAgent, pythonLibrary} {
		file(t, pattern)
	}
}

// ownSystem has a shell see a directory as /var/run/lttng, and become the command that
// follows.
const ownSystem = `mount -t tmpfs tmpfs /var/run/ && mkdir /var/run/lttng && mount --bind "$0" /var/run/lttng && exec "$@"`

// agentCommand is a command with an agent in it, which finds its daemons by PortFile and
// SystemPortFile.
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

// LaunchLoggers starts a program of Java, by the class that BuildJava gave, or of
// Python, by its file, which has LTTng's agent and does what it is told by Ask. Ready
// waits until its first handler is made.
func (h *Home) LaunchLoggers(t testing.TB, path string) *Program {
	t.Helper()
	p := h.program(t, path)
	if source, isPython := strings.CutSuffix(path, ".py"); isPython {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Where the home's user can read it.
		p.Path = filepath.Join(h.Dir, filepath.Base(source)+".py")
		p.Truth = p.Path + "." + strconv.Itoa(h.programs)
		if err := os.WriteFile(p.Path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		p.launch(t, h.agentCommand(python, "-u", p.Path))
		return p
	}
	p.launch(t, h.agentCommand("java", h.javaArguments(t, path)...))
	return p
}
