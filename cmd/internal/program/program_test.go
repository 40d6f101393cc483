// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sample() *cobra.Command {
	root := &cobra.Command{Use: "sample", Short: "Do nothing"}
	root.AddCommand(&cobra.Command{Use: "now THING", Short: "Do it now", Run: func(*cobra.Command, []string) {}})
	return Complete(root)
}

func TestAProgramPrintsItsVersion(t *testing.T) {
	root := sample()
	var said bytes.Buffer
	root.SetOut(&said)
	root.SetArgs([]string{"--version"})
	require.NoError(t, root.Execute())
	assert.Equal(t, "sample version "+Version()+"\n", said.String())
	assert.NotEmpty(t, Version())
}

func TestEachCommandHasAManPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	root := sample()
	root.SetArgs([]string{"man", dir})
	require.NoError(t, root.Execute())
	pages, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "sample-now.1"), filepath.Join(dir, "sample.1")}, pages)
	page, err := os.ReadFile(pages[0])
	require.NoError(t, err)
	assert.Contains(t, string(page), "Do it now")
}

func TestEachShellHasCompletions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "completions")
	root := sample()
	root.SetArgs([]string{"completions", dir})
	require.NoError(t, root.Execute())
	for name, has := range map[string]string{"sample.bash": "-F __start_sample sample", "_sample": "#compdef sample", "sample.fish": "complete -c sample"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Contains(t, string(text), has)
	}
}
