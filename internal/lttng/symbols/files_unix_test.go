// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package symbols

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Paths arrive from the network. With any path, the search does not wait, and reads nothing outside the directory.
func TestOnlyRegularFilesBelowTheDirectoryAreRead(t *testing.T) {
	outside := shopImage("outside").write(t, t.TempDir(), "shop")
	for name, c := range map[string]struct {
		make func(t *testing.T, dir, file string)
		path string
		want string // the function, or a part of the report
	}{
		"a FIFO": {func(t *testing.T, _, file string) { require.NoError(t, syscall.Mkfifo(file, 0o600)) }, "/x/shop", "expected a regular file, got p"},
		"a socket, which is not opened": {func(t *testing.T, _, file string) {
			// Relative, because the path of a socket has at most about a hundred bytes.
			t.Chdir(filepath.Dir(file))
			l, err := net.Listen("unix", filepath.Base(file))
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
		}, "/x/shop", "expected a regular file, got S"},
		"a folder":           {func(t *testing.T, _, file string) { require.NoError(t, os.Mkdir(file, 0o700)) }, "/x/shop", "expected a regular file, got d"},
		"a link to a device": {func(t *testing.T, _, file string) { require.NoError(t, os.Symlink("/dev/zero", file)) }, "/x/shop", "path escapes from parent"},
		"an absolute link":   {func(t *testing.T, _, file string) { require.NoError(t, os.Symlink(outside, file)) }, "/x/shop", "path escapes from parent"},
		"a link out of the directory": {func(t *testing.T, dir, file string) {
			to, err := filepath.Rel(filepath.Dir(file), outside)
			require.NoError(t, err)
			require.NoError(t, os.Symlink(to, file))
		}, "/x/shop", "path escapes from parent"},
		"a folder that is a link out of the directory": {func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "y")))
		}, "/y/shop", "path escapes from parent"},
		"a link that stays in the directory": {func(t *testing.T, dir, file string) {
			shopImage("inside").write(t, dir, "real/shop")
			require.NoError(t, os.Symlink("../real/shop", file))
		}, "/x/shop", "inside"},
		"a link in a circle":  {func(t *testing.T, _, file string) { require.NoError(t, os.Symlink("shop", file)) }, "/x/shop", "too many"},
		"a path with ..":      {func(*testing.T, string, string) {}, "/x/../../" + outside, "no file found"},
		"an empty file":       {func(t *testing.T, dir, _ string) { writeFile(t, dir, "x/shop", nil) }, "/x/shop", "expected an ELF file, got no bytes"},
		"text":                {func(t *testing.T, dir, _ string) { writeFile(t, dir, "x/shop", []byte("#!/bin/sh\nexec java\n")) }, "/x/shop", `expected an ELF file, got one that begins with "#!/b"`},
		"a file below a file": {func(t *testing.T, dir, _ string) { writeFile(t, dir, "x/shop", nil) }, "/x/shop/shop", "not a directory"},
		"NUL in the path":     {func(*testing.T, string, string) {}, "/x/sh\x00op", "invalid argument"},
	} {
		t.Run(name, func(t *testing.T) {
			bed := newFilesBed(t)
			require.NoError(t, os.Mkdir(filepath.Join(bed.dir, "x"), 0o700))
			c.make(t, bed.dir, filepath.Join(bed.dir, "x", "shop"))
			objects := NewObjects(bed.Files, 1)
			require.NoError(t, objects.Map(Mapping{Base: 0x1000, Size: 0x1000, Path: c.path, BuildID: []byte(shopBuildID)}))
			f := objects.Name(0x1100)
			if f.Named {
				assert.Equal(t, c.want, f.Qualified)
				return
			}
			require.Len(t, bed.reported, 1)
			assert.Contains(t, bed.reported[0], c.want)
		})
	}
}

// Where the file systems of the kernel are mounted elsewhere, or behind a link, the path does not show them.
func TestFilesOfTheKernelAreNotRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	for dir, c := range map[string]struct{ path, want string }{
		"/proc/self": {"/cmdline", "expected an ELF file, got no bytes"},
		"/proc/":     {"/self/cmdline", "expected an ELF file, got no bytes"},
		"/sys":       {"/kernel/profiling", "expected no file of the kernel"},
	} {
		t.Run(dir, func(t *testing.T) {
			if info, err := os.Stat(dir + c.path); err != nil || dir == "/sys" && info.Size() == 0 {
				t.Skipf("this machine has no such file %s", dir+c.path)
			}
			bed := newFilesBed(t, func(s *Settings) { s.Paths = []string{dir} })
			bed.name(t, Mapping{Path: c.path})
			require.Len(t, bed.reported, 1)
			assert.Contains(t, bed.reported[0], c.want)
		})
	}
}

func TestADirectoryThatCannotBeOpenedIsReported(t *testing.T) {
	file := writeFile(t, t.TempDir(), "file", nil)
	bed := newFilesBed(t, func(s *Settings) { s.Paths = []string{file} })
	bed.name(t, reportedShop())
	require.Len(t, bed.reported, 1)
	assert.Contains(t, bed.reported[0], file+"/opt/shop/bin/shop: not a directory")
}
