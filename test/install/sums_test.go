// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// programs are the packed programs.
var programs = []string{"otelcol-callbraid", "agentctl", "agentsim", "bytefrog-guard"}

func TestTheChecksumsMatchTheFiles(t *testing.T) {
	packages := dist(t)
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = packages
	said := run(t, check)
	files, err := filepath.Glob(filepath.Join(packages, "*.*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		assert.Contains(t, said, filepath.Base(file)+": OK\n")
	}
}

func TestTheBillOfMaterialsNamesTheCompiledModules(t *testing.T) {
	text, err := os.ReadFile(only(t, dist(t), "callbraid_*_linux_amd64.cdx.json"))
	require.NoError(t, err)
	var bom struct {
		BOMFormat    string
		Components   []struct{ Name, Version, PURL string }
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	require.NoError(t, json.Unmarshal(text, &bom))
	assert.Equal(t, "CycloneDX", bom.BOMFormat)
	byPURL := map[string]string{}
	for _, c := range bom.Components {
		byPURL[c.PURL] = c.Name
	}
	of := map[string][]string{}
	for _, d := range bom.Dependencies {
		of[d.Ref] = d.DependsOn
	}
	for _, program := range programs {
		assert.NotEmpty(t, of[program])
		for _, purl := range of[program] {
			assert.Contains(t, byPURL, purl, program)
		}
	}
	assert.Contains(t, of["otelcol-callbraid"], "pkg:golang/go.opentelemetry.io/collector/processor/batchprocessor@v0.159.0")
	assert.NotContains(t, of["agentctl"], "pkg:golang/go.opentelemetry.io/collector/processor/batchprocessor@v0.159.0")
}
