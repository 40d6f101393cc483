// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"context"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/callbraid/callbraid/test/testbed"
)

// Daemons are a session daemon and a relay daemon.
type Daemons struct {
	// Dir is the home of the daemons and of what they trace.
	Dir   string
	Relay *Relay

	user     *syscall.Credential
	sessiond *process
	programs int
}

// longestHome bounds the name of the directory: the names of sockets in it have to fit
// in 108 bytes.
const longestHome = 60

// Start starts both daemons and waits until they are ready. They end with the test.
// Where LTTng is missing, the test is skipped as Require says.
func Start(t testing.TB) *Daemons {
	t.Helper()
	Require(t)
	d := &Daemons{}
	d.makeHome(t)
	d.Relay = &Relay{
		Live: testbed.Address(t), Output: filepath.Join(d.Dir, "relay"),
		daemons: d, control: testbed.Address(t), data: testbed.Address(t),
	}
	d.Relay.Start(t)
	_, port, err := net.SplitHostPort(testbed.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	d.sessiond = start(t, d.command("lttng-sessiond", "--no-kernel", "--agent-tcp-port="+port), filepath.Join(d.Dir, "sessiond.log"))
	d.sessiond.await(t, "the session daemon answers", func() error {
		return d.command("lttng", "--no-sessiond", "list").Run()
	})
	return d
}

// makeHome makes the directory, and says whose it is.
func (d *Daemons) makeHome(t testing.TB) {
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
	d.Dir = dir
	if os.Geteuid() != 0 {
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatalf("LTTng's daemons are not started as root: %v", err)
	}
	d.user = &syscall.Credential{Uid: number(t, nobody.Uid), Gid: number(t, nobody.Gid)}
	if err := os.Chown(dir, int(d.user.Uid), int(d.user.Gid)); err != nil {
		t.Fatal(err)
	}
}

func number(t testing.TB, text string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// command is a command that the daemons' user runs in their home.
func (d *Daemons) command(name string, arguments ...string) *exec.Cmd {
	return d.commandFor(context.Background(), name, arguments...)
}

func (d *Daemons) commandFor(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = d.Dir
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "LTTNG_") })
	command.Env = append(command.Env, "LTTNG_HOME="+d.Dir, "HOME="+d.Dir, "LC_ALL=C.UTF-8",
		// A program waits until its session daemon has told it what to trace, also on a
		// busy machine.
		"LTTNG_UST_REGISTER_TIMEOUT="+strconv.FormatInt(testbed.Patience.Milliseconds(), 10))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: d.user}
	return command
}

// lttng runs the command line client and gives what it said.
func (d *Daemons) lttng(t testing.TB, arguments ...string) string {
	t.Helper()
	said, err := d.try(arguments...)
	if err != nil {
		t.Fatalf("lttng %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
	return said
}

// try is lttng where it may fail.
func (d *Daemons) try(arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*testbed.Patience)
	defer cancel()
	said, err := d.commandFor(ctx, "lttng", append([]string{"--no-sessiond"}, arguments...)...).CombinedOutput()
	return string(said), err
}
