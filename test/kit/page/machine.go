// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// machine is where a page is gone through: a shell of a user.
type machine struct {
	// root is the folder that the shell has as its root, for machines in a folder.
	root string
	// dir is the user's directory, and notes that of commands and their output.
	dir, notes string

	shell  *exec.Cmd
	typed  io.WriteCloser
	ended  *bufio.Scanner
	errors bytes.Buffer // is read when the shell has ended
}

const (
	// checkout is the part of a checkout in the user's directory.
	checkout = "config docs testdata"

	// ownMachine becomes root of namespaces, makes the machine's own directories, and becomes an
	// ordinary user, who owns /var/run/lttng, in a shell.
	ownMachine = `ip link set lo up && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && mkdir /run/lttng &&
		exec unshare --user --map-user=1000 --map-group=1000 -- bash --norc`

	remedy = "apt-get install util-linux iproute2 bash curl jq procps (Debian), as root or where namespaces of users are allowed"
)

// commands are the programs that a machine, and most pages, need.
var commands = []string{"unshare", "mount", "ip", "bash", "curl", "jq", "pgrep", "pkill"}

// newMachine starts a machine. It ends with the test. If it cannot be made, the test is skipped, or
// fails if CALLBRAID_REQUIRE_PEERS is set.
func newMachine(t testing.TB, project string) *machine {
	t.Helper()
	for _, command := range commands {
		if _, err := exec.LookPath(command); err != nil {
			missing(t, command+" in PATH")
		}
	}
	m := &machine{dir: filepath.Join(t.TempDir(), "callbraid"), notes: t.TempDir()}
	m.lay(t, project)
	m.shell = exec.Command("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"bash", "-c", ownMachine)
	m.shell.Dir = m.dir
	m.shell.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "CALLBRAID_") || strings.HasPrefix(variable, "LTTNG_")
	}), "HOME="+m.dir, "LC_ALL=C.UTF-8", "PATH="+filepath.Join(m.dir, "bin")+":"+os.Getenv("PATH"),
		// A program waits for its session daemon to configure the tracing, also on a busy machine.
		"LTTNG_UST_REGISTER_TIMEOUT="+strconv.FormatInt(testkit.Patience.Milliseconds(), 10))
	m.begin(t)
	if _, ok := m.do("true"); !ok {
		missing(t, "a machine of the page's own ("+strings.TrimSpace(m.errors.String())+")")
	}
	return m
}

// installedMachine starts a machine in a system in a folder, as its root. It ends with the test.
func installedMachine(t testing.TB, root string) *machine {
	t.Helper()
	m := &machine{root: root, dir: filepath.Join(root, "root"), notes: filepath.Join(root, "srv", "page")}
	if err := os.MkdirAll(m.notes, 0o755); err != nil {
		t.Fatal(err)
	}
	m.shell = exec.Command("chroot", root, "bash", "--norc")
	m.shell.Env = []string{"HOME=/root", "LC_ALL=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	m.begin(t)
	return m
}

// inside is a path as the shell sees it.
func (m *machine) inside(path string) string { return strings.TrimPrefix(path, m.root) }

// begin starts the shell, until the test ends.
func (m *machine) begin(t testing.TB) {
	t.Helper()
	m.shell.Stderr = &m.errors
	typed, err := m.shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := m.shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.typed, m.ended = typed, bufio.NewScanner(answers)
	if err := m.shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.end(t) })
}

// lay makes the user's directory look like a checkout after make build.
func (m *machine) lay(t testing.TB, project string) {
	t.Helper()
	programs := map[string]string{
		"otelcol-callbraid": kit.Binary(t), "agentsim": kit.AgentSim(t), "agentctl": kit.AgentCtl(t),
		"bytefrog-guard": kit.Guard(t), "backends": os.Getenv("CALLBRAID_BACKENDS"),
		"otelcol-callbraid-gateway": os.Getenv("CALLBRAID_GATEWAY"),
	}
	links := map[string]string{}
	for name, path := range programs {
		if path != "" {
			links[filepath.Join("bin", name)] = path
		}
	}
	for _, name := range strings.Fields(checkout) {
		links[name] = filepath.Join(project, name)
	}
	if err := os.MkdirAll(filepath.Join(m.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range links {
		to, err := filepath.Abs(to)
		if err == nil {
			err = os.Symlink(to, filepath.Join(m.dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// end ends the shell. In namespaces the shell is the first process, so all its processes end
// before it. Afterwards no process writes to the directory.
func (m *machine) end(t testing.TB) {
	t.Helper()
	if err := m.typed.Close(); err != nil {
		t.Error(err)
	}
	pid := strconv.Itoa(m.shell.Process.Pid)
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		t.Error(err)
	}
	for _, child := range strings.Fields(string(children)) {
		if first, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(first, syscall.SIGKILL) // it may have ended
		}
	}
	_ = m.shell.Wait() // the error is that it was killed
}

// do lets the shell run a line, and returns its exit status; ok is false if the shell has ended.
func (m *machine) do(line string) (status string, ok bool) {
	if _, err := fmt.Fprintf(m.typed, "%s\necho $?\n", line); err != nil {
		return "", false
	}
	if !m.ended.Scan() {
		return "", false
	}
	return m.ended.Text(), true
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CALLBRAID_REQUIRE_PEERS") != "" {
		t.Fatalf("expected %s, since CALLBRAID_REQUIRE_PEERS is set: %s", what, remedy)
	}
	t.Skipf("no %s: %s", what, remedy)
}
