// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// system is a Debian with nothing but its base, in a folder.
type system struct{ root string }

// cleanSystem installs Debian's base in a folder that goes with the test.
func cleanSystem(t *testing.T) *system {
	t.Helper()
	want(t, "debootstrap", "debootstrap")
	s := &system{root: filepath.Join(t.TempDir(), "root")}
	run(t, exec.Command("debootstrap", "--variant=minbase", "--include=libc-bin", "bookworm", s.root))
	return s
}

// dist is the folder that `make package` has filled.
func dist(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("CALLBRAID_DIST")
	if folder == "" {
		t.Skip("no packages: run make package-test")
	}
	if os.Getuid() != 0 {
		t.Skip("packages are installed by root only: sudo make package-test")
	}
	return folder
}

// want skips the test where a program is missing, or fails it where peers are required.
func want(t *testing.T, program, debianPackage string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	remedy := "apt-get install " + debianPackage
	if os.Getenv("CALLBRAID_REQUIRE_PEERS") != "" {
		t.Fatalf("no %s in PATH: %s", program, remedy)
	}
	t.Skipf("no %s in PATH: %s", program, remedy)
}

// only is the one file of a pattern.
func only(t *testing.T, folder, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	require.NoError(t, err)
	require.Len(t, files, 1, pattern)
	return files[0]
}

func run(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", command, output)
	return string(output)
}

// path is a path of the system as others see it.
func (s *system) path(inside string) string { return filepath.Join(s.root, inside) }

// run runs a program in the system as root.
func (s *system) run(t *testing.T, arguments ...string) string {
	t.Helper()
	return run(t, exec.Command("chroot", append([]string{s.root}, arguments...)...))
}

func (s *system) read(t *testing.T, inside string) string {
	t.Helper()
	text, err := os.ReadFile(s.path(inside))
	require.NoError(t, err)
	return string(text)
}

// install installs a package, whose file it copies into the system.
func (s *system) install(t *testing.T, file string) {
	t.Helper()
	inside := "/" + filepath.Base(file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.path(inside), text, 0o644))
	s.run(t, "dpkg", "--install", inside)
}

// unit is what a systemd unit says; of several lines with one name the last.
type unit map[string]string

func (s *system) unit(t *testing.T, name string) unit {
	t.Helper()
	path := "/usr/lib/systemd/system/" + name
	u := unit{}
	for line := range strings.Lines(s.read(t, path)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			u[key] = value
		}
	}
	return u
}

// environment is what an environment file says.
func (s *system) environment(t *testing.T, path string) map[string]string {
	t.Helper()
	variables := map[string]string{}
	for line := range strings.Lines(s.read(t, path)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			variables[key] = strings.Trim(value, `"`)
		}
	}
	return variables
}

// service is a program that runs in the system as its unit says.
type service struct {
	command *exec.Cmd
	output  *os.File
	ended   chan error
}

// start runs what a unit starts, as its user, with its environment and its state directory,
// and with more arguments.
func (s *system) start(t *testing.T, u unit, variables map[string]string, more ...string) *service {
	t.Helper()
	if state := u["StateDirectory"]; state != "" {
		s.run(t, "install", "--directory", "--owner="+u["User"], "--group="+u["Group"], "--mode="+u["StateDirectoryMode"], "/var/lib/"+state)
	}
	arguments := strings.Fields(os.Expand(u["ExecStart"], func(name string) string { return variables[name] }))
	arguments = append([]string{"--userspec=" + u["User"] + ":" + u["Group"], s.root}, append(arguments, more...)...)
	p := &service{command: exec.Command("chroot", arguments...), ended: make(chan error, 1)}
	for key, value := range variables {
		p.command.Env = append(p.command.Env, key+"="+value)
	}
	var err error
	p.output, err = os.CreateTemp(t.TempDir(), "output")
	require.NoError(t, err)
	p.command.Stdout, p.command.Stderr = p.output, p.output
	require.NoError(t, p.command.Start())
	go func() { p.ended <- p.command.Wait() }()
	t.Cleanup(func() {
		if err := p.command.Process.Kill(); err == nil || !errors.Is(err, os.ErrProcessDone) {
			<-p.ended
		}
	})
	return p
}

// stop ends a service as systemd does, and expects that it ends well.
func (p *service) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-p.ended, "%s", p.said(t))
}

func (p *service) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.output.Name())
	require.NoError(t, err)
	return string(text)
}
