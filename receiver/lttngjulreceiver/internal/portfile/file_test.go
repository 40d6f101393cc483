// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package portfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Root may write everywhere, so the name is too long for a temporary file.
func TestAnErrorNamesTheDirectoryThatCannotBeWritten(t *testing.T) {
	directory := t.TempDir()
	f, err := newFile(filepath.Join(directory, strings.Repeat("x", 250)), 1)
	require.NoError(t, err)
	_, err = f.claim()
	assert.ErrorContains(t, err, f.path+" cannot be written: ")
	assert.ErrorContains(t, err, ": let the collector's user write to "+directory+", or leave the file out of port_files")
}

func TestAFileThatAppearsMeanwhileIsNotReplaced(t *testing.T) {
	f, err := newFile(filepath.Join(t.TempDir(), "agent.port"), 1)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.path, []byte("2\n"), 0o600))
	assert.Error(t, f.write(false))
	expectContent(t, f.path, "2\n")
	require.NoError(t, f.write(true))
	expectContent(t, f.path, "1\n")
}

func expectContent(t *testing.T, path, want string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, want, string(content))
}
