// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/kit"
)

// Go compiles a package once for all modules of the project only if they have the same versions of all modules that it
// imports. With another version of one module that many import, a fresh machine compiles most packages again.
func TestTheModulesOfTheProjectHaveTheVersionsOfTheDistribution(t *testing.T) {
	t.Parallel()
	program, err := buildinfo.ReadFile(kit.Binary(t))
	require.NoError(t, err)
	versions := map[string]string{}
	for _, module := range program.Deps {
		versions[module.Path] = module.Version
	}
	for _, folder := range []string{".", "cmd", "test", "internal/tools"} {
		text, err := os.ReadFile(filepath.Join("..", folder, "go.mod"))
		require.NoError(t, err)
		same := 0
		for _, line := range regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`).FindAllStringSubmatch(string(text), -1) {
			path, version := line[1], line[2]
			if versions[path] == "" {
				continue
			}
			same++
			assert.Equal(t, versions[path], version, "%s of the module in the folder %s: run go get %s@%s && go mod tidy there", path, folder, path, versions[path])
		}
		assert.Greater(t, same, 10, "few modules of the folder %s are those of the distribution", folder)
	}
}
