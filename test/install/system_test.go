// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/kit"
)

// system is a Debian base system in a folder.
type system struct{ root string }

// cleanSystem installs Debian's base in a folder that is removed after the test.
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

func (s *system) write(t *testing.T, inside, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(s.path(inside)), 0o755))
	require.NoError(t, os.WriteFile(s.path(inside), []byte(text), 0o644))
}

// install copies a package into the system, installs it, and returns the output.
func (s *system) install(t *testing.T, file string) string {
	t.Helper()
	inside := "/" + filepath.Base(file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.path(inside), text, 0o644))
	return s.run(t, "dpkg", "--force-unsafe-io", "--force-confold", "--install", inside)
}

// installByReadme installs a package with the README's command, without sudo, which root does not need.
func (s *system) installByReadme(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	s.write(t, "/srv/dist/"+filepath.Base(file), string(text))
	command, ok := strings.CutPrefix(kit.Command(t, "../..", "run it as a service"), "sudo ")
	require.True(t, ok)
	s.run(t, "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", "cd /srv && "+strings.Replace(command, "apt install", "apt-get install -y", 1))
}
