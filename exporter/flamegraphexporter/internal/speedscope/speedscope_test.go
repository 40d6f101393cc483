// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package speedscope

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listed are the sums of files, by path, as the list in the repository has them.
func listed(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("SHA256SUMS")
	require.NoError(t, err)
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, file, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok, line)
		sums[file] = sum
	}
	return sums
}

func TestTheServedFilesHaveTheListedSums(t *testing.T) {
	want := listed(t)
	licences, err := os.ReadFile("licences.txt")
	require.NoError(t, err)
	got := map[string]string{"licences.txt": sumOf(licences)}
	require.NoError(t, fs.WalkDir(files, release, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(file)
		got[file] = sumOf(content)
		return err
	}))
	assert.Equal(t, want, got, "run fetch.sh")
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestTheLicencesNameSpeedscopeAndItsLibraries(t *testing.T) {
	text, err := os.ReadFile("licences.txt")
	require.NoError(t, err)
	served, err := files.ReadFile(release + "/release.txt")
	require.NoError(t, err)
	version, _, _ := strings.Cut(string(served), "\n")
	for _, want := range []string{"==== " + version + ": LICENSE", "Jamie Wong", "SIL OPEN FONT LICENSE", "preact@", "aphrodite@", "protobufjs@"} {
		assert.Contains(t, string(text), want)
	}
	script, err := os.ReadFile("fetch.sh")
	require.NoError(t, err)
	assert.Contains(t, string(script), "\nspeedscope="+version+"\n")
}

func get(t *testing.T, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	w.Header().Set("Cache-Control", "no-store")
	Handler("/speedscope/").ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

// references are the files that the page and its style sheet name.
var references = regexp.MustCompile(`(?:href|src)="([^"]+)"|url\("([^"]+)"\)`)

func TestThePageAndAllFilesThatItNeedsAreServed(t *testing.T) {
	types := map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".woff2": "font/woff2", ".png": "image/png",
	}
	seen := 0
	var visit func(target string)
	visit = func(target string) {
		w := get(t, target)
		require.Equal(t, http.StatusOK, w.Code, target)
		if want, ok := types[path.Ext(target)]; ok {
			seen++
			assert.Equal(t, want, w.Header().Get("Content-Type"), target)
			assert.Contains(t, w.Header().Get("Cache-Control"), "immutable", target)
		}
		if !strings.HasSuffix(target, "/") && path.Ext(target) != ".css" {
			return
		}
		for _, found := range references.FindAllStringSubmatch(w.Body.String(), -1) {
			visit("/speedscope/" + found[1] + strings.TrimPrefix(found[2], "./"))
		}
	}
	visit("/speedscope/")
	assert.Equal(t, 5, seen, "a style sheet, a script, a font and two pictures")
	assert.Equal(t, http.StatusNotFound, get(t, "/speedscope/other").Code)
}

func TestThePolicyAllowsNothingInlineAndNoOtherServer(t *testing.T) {
	w := get(t, "/speedscope/")
	policy := w.Header().Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'; script-src 'self' 'wasm-unsafe-eval';")
	for _, not := range []string{"'unsafe-inline'", "'unsafe-eval'", "http", "*"} {
		assert.NotContains(t, policy, not)
	}
	assert.Contains(t, policy, "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='")
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"), "the page names the files of its version")
}
