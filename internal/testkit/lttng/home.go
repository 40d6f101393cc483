// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
)

// Home is a directory that is home to programs, and to daemons if there are any.
type Home struct {
	Dir string

	user     *syscall.Credential
	programs int
}

// LTTng's directories in a home: the user's, and the one that agents see as the system's.
const (
	userDir   = ".lttng"
	systemDir = "system"
)

// longestHome bounds the name of the directory: the names of sockets in it have to fit
// in 108 bytes.
const longestHome = 60

// PortFile returns the file in which agents look for the port of the user's daemon.
func (h *Home) PortFile() string { return filepath.Join(h.Dir, userDir, "agent.port") }

// SystemPortFile returns the file in which agents look for the port of the system's daemon. Only agents see it as
// /var/run/lttng/agent.port.
func (h *Home) SystemPortFile() string { return filepath.Join(h.Dir, systemDir, "agent.port") }

// NewHome makes a home, which is removed after the test.
func NewHome(t testing.TB) *Home {
	t.Helper()
	parent := os.TempDir()
	if len(parent) > longestHome {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "lttng")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the daemons' directory: %v", err)
		}
	})
	h := &Home{Dir: dir}
	for _, sub := range []string{userDir, systemDir} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() != 0 {
		return h
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatalf("LTTng's daemons are not started as root: %v", err)
	}
	h.user = &syscall.Credential{Uid: number(t, nobody.Uid), Gid: number(t, nobody.Gid)}
	for _, path := range []string{dir, filepath.Join(dir, userDir)} {
		if err := os.Chown(path, int(h.user.Uid), int(h.user.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func number(t testing.TB, text string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// command is a command that the home's user runs there.
func (h *Home) command(name string, arguments ...string) *exec.Cmd {
	return h.commandFor(context.Background(), name, arguments...)
}

func (h *Home) commandFor(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = h.Dir
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "LTTNG_") })
	command.Env = append(command.Env, "LTTNG_HOME="+h.Dir, "HOME="+h.Dir, "LC_ALL=C.UTF-8",
		// A program waits until its session daemon has enabled its events, also on a busy machine.
		"LTTNG_UST_REGISTER_TIMEOUT="+strconv.FormatInt(testkit.Patience.Milliseconds(), 10))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: h.user}
	return command
}
