// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
)

// pages serves a page of all services with the text.
func pages(t *testing.T, text string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
	t.Cleanup(server.Close)
	return server.URL
}

const twoServices = `<a href="services/a&amp;b/ui/flamegraph">flame graph</a> <a href="services/a&amp;b/">a&amp;b</a>
<a href="services/c/">c</a>`

func TestThePageOfAServiceIsFoundOnThePageOfServices(t *testing.T) {
	address := pages(t, twoServices)
	got, err := serviceAddress(t.Context(), address)
	require.NoError(t, err)
	assert.Equal(t, address+"/services/a&b/", got)

	_, err = serviceAddress(t.Context(), pages(t, "nothing yet"))
	assert.ErrorContains(t, err, "expected a link to a service")
}

// picture takes a picture with a script as the browser; empty: there is no browser.
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
	file = filepath.Join(directory, "picture.png")
	require.NoError(t, os.WriteFile(file, []byte("of before"), 0o644))
	said, err := os.Create(filepath.Join(directory, "status"))
	require.NoError(t, err)
	defer said.Close() // written by then
	var b strings.Builder
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
	assert.Regexp(t, `^http://127.0.0.1:[0-9]+/services/a&b/\n$`, string(taken))
}

// assertOfBefore checks that the previous picture is unchanged, and the only file.
func assertOfBefore(t *testing.T, file string) {
	t.Helper()
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "of before", string(got))
	pictures, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.png"))
	require.NoError(t, err)
	assert.Equal(t, []string{file}, pictures)
}

func TestWithoutABrowserTheStatusNamesAPackage(t *testing.T) {
	_, status, file, err := picture(t, "")
	require.NoError(t, err)
	assert.Contains(t, status, "apt-get install chromium")
	assertOfBefore(t, file)
}

func TestAPictureThatWasNotTakenIsAnError(t *testing.T) {
	for what, script := range map[string]string{"it fails": "echo no display; exit 1", "it prints a lot": `i=0
while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done
echo no display
exit 1`, "it writes no file": "echo no display",
		"it fails with half of it": `for argument; do
	case $argument in --screenshot=*) echo half > "${argument#--screenshot=}" ;; esac
done
echo no display
exit 1`,
	} {
		_, _, file, err := picture(t, script)
		assert.ErrorContains(t, err, "no display", what)
		assert.ErrorContains(t, err, "no picture of the page: ", what)
		assert.Less(t, strings.Count(err.Error(), "\n"), 10, what)
		assertOfBefore(t, file)
	}
}

// hangingBrowser is a script that hangs in its first starts, and then writes the number of its start as the picture.
func hangingBrowser(t *testing.T, hangs int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chromium")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `#!/bin/sh
echo start >> %[1]s.starts
start=$(wc -l < %[1]s.starts)
[ $start -gt %[2]d ] || exec sleep 1000
for argument; do
	case $argument in --screenshot=*) echo "start $start" > "${argument#--screenshot=}" ;; esac
done
`, path, hangs), 0o755))
	return path
}

func TestABrowserThatHangsIsReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the browser is a script of a shell")
	}
	file := filepath.Join(t.TempDir(), "picture.png")
	require.NoError(t, photograph(t.Context(), hangingBrowser(t, 1), "http://localhost/", file, 5*time.Second))
	taken, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "start 2\n", string(taken))

	err = photograph(t.Context(), hangingBrowser(t, browserStarts), "http://localhost/", file, 100*time.Millisecond)
	assert.ErrorContains(t, err, "none of 3 browsers ended within 100ms: ")
}

// The collector is a script, whose pages the test serves, and the browser fails.
func TestTheSummaryIsPrintedWhenThePictureFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the browser is a script of a shell")
	}
	directory := t.TempDir()
	program := func(name, script string) string {
		path := filepath.Join(directory, name)
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
		return path
	}
	program("chromium", "echo no display; exit 1")
	collector := program("collector", `trap 'exit 0' INT
echo listening
while :; do sleep 0.1; done`)
	t.Setenv("PATH", directory+":"+os.Getenv("PATH"))
	status, err := os.Create(filepath.Join(directory, "status"))
	require.NoError(t, err)
	defer status.Close() // the other end is not read

	for _, keep := range []bool{false, true} {
		ctx, interrupt := context.WithCancel(t.Context())
		address := testkit.Address(t)
		data := filepath.Join(directory, fmt.Sprintf("data of %v", keep))
		served := make(chan *http.Server)
		go func() {
			served <- serveWhenStarted(t, filepath.Join(data, logName), address, twoServices+functionLabel)
		}()
		var out testkit.Output
		if keep {
			go func() {
				assert.True(t, testkit.Happens(func() bool { return strings.Contains(out.String(), "Where to look") }))
				interrupt()
			}()
		}
		err = Run(ctx, Options{
			Collector: collector, Config: "none", Data: data, Endpoint: "127.0.0.1:0",
			Health: "http://" + address, Metrics: "http://" + address, Pages: "http://" + address,
			Agent: func() error { return nil }, Keep: keep, Screenshot: filepath.Join(directory, "picture.png"),
			Out: &out, Status: status,
		})
		interrupt()
		require.NoError(t, (<-served).Close())
		assert.ErrorContains(t, err, "no display", "keep: %v", keep)
		assert.Contains(t, out.String(), "Where to look", "keep: %v", keep)
	}
}

// serveWhenStarted serves the text at the address once the collector has a log.
func serveWhenStarted(t *testing.T, log, address, text string) *http.Server {
	assert.True(t, testkit.Happens(func() bool {
		_, err := os.Stat(log)
		return err == nil
	}))
	listener, err := net.Listen("tcp", address)
	assert.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return server
}
