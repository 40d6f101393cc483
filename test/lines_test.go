// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachLine calls f for each line of a file exporter's file in JSON: a line for each hand-over.
func eachLine(t *testing.T, path string, f func(json.RawMessage)) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text = text[:bytes.LastIndexByte(text, '\n')+1] // a line may not be whole yet
	for line := range bytes.Lines(text) {
		f(line)
	}
}
