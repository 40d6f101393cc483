// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

var today = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// copied is a folder with the files of the project that have its version.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(requiring, changelog) {
		text, err := os.ReadFile(filepath.Join("../../..", name))
		require.NoError(t, err)
		if name == changelog {
			// Just after a release the chapter is empty.
			text = bytes.Replace(text, []byte("\n## [Unreleased]\n"), []byte("\n## [Unreleased]\n\n### Added\n\n- A change.\n"), 1)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	return dir
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}

func TestAReleaseHasOneVersionEverywhere(t *testing.T) {
	dir := copied(t)
	before := read(t, dir, changelog)
	require.NoError(t, set(dir, "7.1.0", today))
	require.NoError(t, compare(dir))
	assert.Contains(t, read(t, dir, manifest), "\n  version: 7.1.0\n")
	assert.Contains(t, read(t, dir, manifest), "  - gomod: github.com/callbraid/callbraid v7.1.0\n    import: ")
	assert.Contains(t, read(t, dir, manifest), "\n  module: github.com/callbraid/callbraid/build\n")
	assert.Contains(t, read(t, dir, manifest), "\n  - github.com/callbraid/callbraid => ../\n")
	assert.Contains(t, read(t, dir, "cmd/go.mod"), "\tgithub.com/callbraid/callbraid v7.1.0\n")
	assert.Contains(t, read(t, dir, changelog), "\n## [Unreleased]\n\n## [7.1.0] - 2026-12-01\n\n### ")
	assert.Len(t, read(t, dir, changelog), len(before)+len("\n## [7.1.0] - 2026-12-01\n"))
	assert.ErrorContains(t, set(dir, "7.1.0", today), "and none for 7.1.0")
}

func TestTheVersionAfterAReleaseHasNoChapter(t *testing.T) {
	dir := copied(t)
	before := read(t, dir, changelog)
	require.NoError(t, set(dir, "7.2.0-dev", today))
	require.NoError(t, compare(dir))
	assert.Equal(t, before, read(t, dir, changelog))
}

func TestAnotherVersionIsNoticed(t *testing.T) {
	for _, name := range requiring {
		dir := copied(t)
		require.NoError(t, set(dir, "7.1.0", today))
		other := required.ReplaceAllString(read(t, dir, name), "$1 v7.0.9")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(other), 0o644))
		assert.EqualError(t, compare(dir), name+": expected github.com/callbraid/callbraid v7.1.0, got v7.0.9: run make set-version")
	}
}

func TestAVersionHasThreeNumbers(t *testing.T) {
	for _, wrong := range []string{"", "v1.2.3", "1.2", "1.2.3+x", "next"} {
		assert.ErrorContains(t, set(t.TempDir(), wrong, today), "expected a version such as 0.1.0")
	}
}

// The go command downloads a module as a zip file, in which not every name of a file is valid.
func TestTheComponentsAreAModuleThatCanBePublished(t *testing.T) {
	require.NoError(t, zip.CreateFromVCS(io.Discard, module.Version{Path: "github.com/callbraid/callbraid", Version: "v0.1.0"}, "../../..", "HEAD", ""))
}
