// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// copyOfTheProject copies all files of the project, with changes that are not committed, into the folder $1.
const copyOfTheProject = `git ls-files --cached --others --exclude-standard --deduplicate |
	tar --create --ignore-failed-read --files-from=- | tar --extract --directory="$1"`

// The first steps of docs/release.md, in a copy of the project.
func TestTheStepsOfAReleaseAgreeAboutItsVersion(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files := exec.CommandContext(t.Context(), "sh", "-c", copyOfTheProject, "sh", folder)
	files.Dir = ".."
	output, err := files.CombinedOutput()
	require.NoError(t, err, "%s", output)
	// Just after a release the chapter of the next version is empty.
	changelog := filepath.Join(folder, "CHANGELOG.md")
	text, err := os.ReadFile(changelog)
	require.NoError(t, err)
	const unreleased, added = "\n## [Unreleased]\n", "\n### Added\n\n- A change.\n"
	require.NoError(t, os.WriteFile(changelog, []byte(strings.Replace(string(text), unreleased, unreleased+added, 1)), 0o644))
	run := func(arguments ...string) (string, error) {
		command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory"}, arguments...)...)
		command.Dir = folder
		output, err := command.CombinedOutput()
		return string(output), err
	}
	said, err := run("check-release", "TAG=v0.98.7")
	require.Error(t, err, "%s", said)
	for _, arguments := range [][]string{{"set-version", "TO=0.98.7"}, {"check-release", "TAG=v0.98.7"}} {
		said, err := run(arguments...)
		require.NoError(t, err, "%s", said)
	}
	notes, err := run("release-notes")
	require.NoError(t, err, "%s", notes)
	assert.Contains(t, notes, strings.TrimSpace(added))
	for _, manifest := range []string{"builder-config.yaml", "builder-config-gateway.yaml", "builder-config-small.yaml"} {
		text, err := os.ReadFile(filepath.Join(folder, manifest))
		require.NoError(t, err)
		assert.Contains(t, string(text), "\n  version: 0.98.7\n", manifest)
		assert.Contains(t, string(text), "callbraid/callbraid v0.98.7\n", manifest)
	}
}
