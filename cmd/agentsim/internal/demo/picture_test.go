// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pages serves a page of all services with the text.
func pages(t *testing.T, text string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
	t.Cleanup(server.Close)
	return server.URL
}

const twoServices = `<a href="services/a&amp;b/">a&amp;b</a> <a href="services/a&amp;b/ui/flamegraph">flame graph</a>
<a href="services/c/ui/flamegraph">flame graph</a>`

func TestTheFlameGraphIsFoundOnThePageOfServices(t *testing.T) {
	address := pages(t, twoServices)
	got, err := flameGraphAddress(t.Context(), address)
	require.NoError(t, err)
	assert.Equal(t, address+"/services/a&b/ui/flamegraph", got)

	_, err = flameGraphAddress(t.Context(), pages(t, "nothing yet"))
	assert.ErrorContains(t, err, "expected a link to a flame graph")
}

// picture takes a picture with a browser that is a script; empty: there is none.
func picture(t *testing.T, script string) (out, status, file string, err error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the browser is a script of a shell")
	}
	directory := t.TempDir()
	if script != "" {
		require.NoError(t, os.WriteFile(filepath.Join(directory, "chromium"), []byte("#!/bin/sh\n"+script), 0o755))
	}
	t.Setenv("PATH", directory)
	said, err := os.Create(filepath.Join(directory, "status"))
	require.NoError(t, err)
	defer said.Close() // written by then
	var b strings.Builder
	file = filepath.Join(directory, "picture.png")
	err = takePicture(t.Context(), Options{Pages: pages(t, twoServices), Screenshot: file, Out: &b, Status: said})
	_, seekErr := said.Seek(0, io.SeekStart)
	require.NoError(t, seekErr)
	text, readErr := io.ReadAll(said)
	require.NoError(t, readErr)
	return b.String(), string(text), file, err
}

func TestAPictureIsTaken(t *testing.T) {
	out, _, file, err := picture(t, `for argument; do
	case $argument in --screenshot=*) file=${argument#--screenshot=} ;; http*) address=$argument ;; esac
done
echo "$address" > "$file"`)
	require.NoError(t, err)
	assert.Contains(t, out, file)
	taken, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Regexp(t, `^http://127.0.0.1:[0-9]+/services/a&b/ui/flamegraph\n$`, string(taken))
}

func TestWithoutABrowserItIsSaidHowToGetOne(t *testing.T) {
	_, status, file, err := picture(t, "")
	require.NoError(t, err)
	assert.Contains(t, status, "apt-get install chromium")
	assert.NoFileExists(t, file)
}

func TestAPictureThatWasNotTakenIsAnError(t *testing.T) {
	for what, script := range map[string]string{"it fails": "echo no display; exit 1", "it leaves nothing": "echo no display"} {
		_, _, _, err := picture(t, script)
		assert.ErrorContains(t, err, "no display", what)
	}
}
