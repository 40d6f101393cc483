// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestGeneratedMetricsHaveTheSchemaOfTheOtherSignals(t *testing.T) {
	paths, err := filepath.Glob("../../../receiver/*/metadata.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var metadata struct {
			Version string `yaml:"sem_conv_version"`
		}
		require.NoError(t, yaml.Unmarshal(text, &metadata))
		assert.Equal(t, URL, "https://opentelemetry.io/schemas/"+metadata.Version, path)
	}
}
