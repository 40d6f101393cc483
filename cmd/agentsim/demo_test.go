// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheDemoFindsFilesOfACheckoutAnArchiveOrAPackage(t *testing.T) {
	const file = "config/standalone.yaml"
	checkout, installed := t.TempDir(), t.TempDir()
	roots := []string{checkout, filepath.Join(installed, "nothing"), installed}
	has := func(root string) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "config"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), nil, 0o644))
	}
	assert.Equal(t, file, shipped(file, roots), "an error names the file of the working directory")
	has(installed)
	assert.Equal(t, filepath.Join(installed, file), shipped(file, roots))
	has(checkout)
	assert.Equal(t, filepath.Join(checkout, file), shipped(file, roots), "the nearest one")
	assert.Equal(t, "/elsewhere/collector", shipped("/elsewhere/collector", roots))
}
