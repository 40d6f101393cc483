// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package d3flamegraph

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheServedFilesHaveTheListedSums(t *testing.T) {
	text, err := os.ReadFile("SHA256SUMS")
	require.NoError(t, err)
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, file, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok, line)
		want[file] = sum
	}
	licences, err := os.ReadFile("licences.txt")
	require.NoError(t, err)
	got := map[string]string{"licences.txt": sumOf(licences)}
	entries, err := fs.ReadDir(files, release)
	require.NoError(t, err)
	for _, entry := range entries {
		content, err := files.ReadFile(path.Join(release, entry.Name()))
		require.NoError(t, err)
		got[path.Join(release, entry.Name())] = sumOf(content)
	}
	assert.Equal(t, want, got, "run fetch.sh")
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestTheLicencesNameAllLibraries(t *testing.T) {
	text, err := os.ReadFile("licences.txt")
	require.NoError(t, err)
	script, err := os.ReadFile("fetch.sh")
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(script), "libraries='")
	list, _, _ = strings.Cut(list, "'")
	packages := append(strings.Fields(list), "d3-flame-graph@4.1.3", "d3-selection@3.0.0")
	assert.Len(t, packages, 13)
	for _, library := range packages {
		assert.Contains(t, string(text), "==== "+library+": LICENSE\n")
	}
	assert.Contains(t, string(text), "Apache License")
	assert.Contains(t, string(text), "Mike Bostock")
}

func TestScriptsAreServedAndKept(t *testing.T) {
	for target, want := range map[string]int{
		"/d3/" + Selection: http.StatusOK, "/d3/" + FlameGraph: http.StatusOK, "/d3/": http.StatusNotFound, "/d3/other": http.StatusNotFound,
	} {
		w := httptest.NewRecorder()
		w.Header().Set("Cache-Control", "no-store")
		Handler("/d3/").ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		assert.Equal(t, want, w.Code, target)
		if want == http.StatusOK {
			assert.Equal(t, "text/javascript; charset=utf-8", w.Header().Get("Content-Type"), target)
			assert.Contains(t, w.Header().Get("Cache-Control"), "immutable", target)
			assert.NotContains(t, w.Body.String(), "sourceMappingURL", "browsers would look for it")
		}
	}
}
