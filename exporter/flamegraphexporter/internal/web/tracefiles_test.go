// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// packet is a whole packet of a trace file with so many bytes of content, up to 127.
func packet(bytes int) string {
	return "\x0a" + string(rune(bytes)) + strings.Repeat("p", bytes)
}

// traceFilesAt writes the current file and earlier ones, and returns their path.
func traceFilesAt(t testing.TB, name, current string, earlier ...string) string {
	t.Helper()
	directory := t.TempDir()
	path := filepath.Join(directory, name+".perfetto-trace")
	require.NoError(t, os.WriteFile(path, []byte(current), 0o600))
	for n, content := range earlier {
		backup := fmt.Sprintf("%s-2026-01-%02dT%02d-00-00.000.perfetto-trace", name, 1+n/24, n%24)
		require.NoError(t, os.WriteFile(filepath.Join(directory, backup), []byte(content), 0o600))
	}
	return path
}

func servingTraceFiles(path string) *Handler {
	return New(playing("shop", "f"), Options{Logger: zap.NewNop(), MaxKeptWindows: keptWindows, MaxKeptWindowNodes: keptWindowNodes, TraceFiles: path})
}

// linksTo are the addresses of links on a page below a folder, each once.
func linksTo(t *testing.T, h http.Handler, on, folder string) (all []string) {
	t.Helper()
	for _, e := range elements(t, page(t, h, on)) {
		if href := attribute(e, "href"); e.Data == "a" && strings.Contains(href, folder) {
			all = append(all, href)
		}
	}
	return all
}

func TestPagesOfferTraceFilesUpToTheirLastWholePacket(t *testing.T) {
	for _, name := range []string{"spans", `a"b <b>&%2f;é`, "~", "a b#c?d"} {
		t.Run(name, func(t *testing.T) {
			path := traceFilesAt(t, name, packet(100)+"\x0a\x50torn", packet(3))
			h := servingTraceFiles(path)
			all := linksTo(t, h, "/", "/files/")
			require.Len(t, all, 2)
			for i, want := range []string{packet(100), packet(3)} {
				w := get(t, h, strings.TrimPrefix(all[i], "."))
				require.Equal(t, http.StatusOK, w.Code, w.Body)
				assert.Equal(t, want, w.Body.String())
				assert.Equal(t, fmt.Sprint(len(want)), w.Header().Get("Content-Length"))
				_, parameters, err := mime.ParseMediaType(w.Header().Get("Content-Disposition"))
				require.NoError(t, err)
				assert.True(t, strings.HasPrefix(parameters["filename"], name), parameters)
			}
			text := textOf(t, page(t, h, "/"))
			assert.Contains(t, text, name+".perfetto-trace")
			assert.Contains(t, text, "2026-01-01 00:00:00 UTC")
			assert.NotContains(t, text, "not listed")

			ofService := linksTo(t, h, "/services/shop/", "/files/")
			require.Len(t, ofService, 1, "the page of a service has the latest one")
			assert.Equal(t, "../../"+strings.TrimPrefix(all[0], "./"), ofService[0])
			assert.Empty(t, linksTo(t, h, "/services/shop/profiles/f/fs/", "/files/"), "profiles have no calls")
		})
	}
}

func TestTraceFilesAreOfferedBeforeAnySpanHasArrived(t *testing.T) {
	h := New(&played{}, Options{Logger: zap.NewNop(), TraceFiles: traceFilesAt(t, "spans", packet(1))})
	assert.Len(t, linksTo(t, h, "/", "/files/"), 1)
}

func TestOnlyListedTraceFilesAreServed(t *testing.T) {
	path := traceFilesAt(t, "spans", packet(1))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "secret"), []byte("secret"), 0o600))
	h := servingTraceFiles(path)
	for _, file := range []string{"secret", "..%2fsecret", "%2e%2e", "spans.perfetto-trace%00", "spans-2026-01-01T00-00-00.000.perfetto-trace"} {
		w := get(t, h, "/files/"+file)
		assert.Equal(t, http.StatusNotFound, w.Code, file)
		assert.NotContains(t, w.Body.String(), filepath.Dir(path))
	}
	assert.Equal(t, http.StatusNotFound, get(t, serve(playing("shop", "f")), "/files/spans.perfetto-trace").Code, "without the setting")
	assert.NotContains(t, page(t, serve(playing("shop", "f")), "/"), "Trace files")
}

func TestAPageShowsWhyItListsNoTraceFiles(t *testing.T) {
	h := servingTraceFiles(filepath.Join(t.TempDir(), "none", "spans.perfetto-trace"))
	assert.Contains(t, page(t, h, "/"), "No trace file has been written yet")
	assert.Empty(t, linksTo(t, h, "/services/shop/", "trace-files"))

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	core, logged := observer.New(zap.WarnLevel)
	h = New(playing("shop", "f"), Options{Logger: zap.New(core), TraceFiles: filepath.Join(file, "spans.perfetto-trace")})
	for range 3 {
		assert.Contains(t, page(t, h, "/"), "cannot be listed")
		assert.NotContains(t, page(t, h, "/services/shop/"), file)
	}
	assert.Equal(t, 1, logged.FilterMessage("Could not list the trace files").Len())
}

func TestAPageListsTheLatestTraceFiles(t *testing.T) {
	earlier := make([]string, mostTraceFiles+4)
	for i := range earlier {
		earlier[i] = packet(1)
	}
	h := servingTraceFiles(traceFilesAt(t, "spans", packet(1), earlier...))
	assert.Len(t, linksTo(t, h, "/", "/files/"), mostTraceFiles)
	assert.Contains(t, textOf(t, page(t, h, "/")), "5 earlier files are not listed")
}

// Downloads of trace files have their own turns. A reader may need longer than the server's time, if it reads a mebibyte a
// second.
func TestALargeTraceFileExtendsTheServersTime(t *testing.T) {
	content := strings.Repeat("\x0a\xfd\xff\x03"+strings.Repeat("x", 65533), 160) // 10 MiB
	path := traceFilesAt(t, "spans", content)
	for pause, whole := range map[time.Duration]bool{25 * time.Millisecond: true, 50 * time.Millisecond: false} {
		synctest.Test(t, func(t *testing.T) {
			h := New(playing("shop", "f"), Options{Logger: zap.NewNop(), WriteTimeout: time.Second, TraceFiles: path})
			w := &paced{slow: slow{ResponseRecorder: httptest.NewRecorder()}, pause: pause}
			go h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/files/spans.perfetto-trace", nil))
			synctest.Wait()
			assert.Len(t, h.fileDownloads, 1)
			assert.Empty(t, h.downloads)
			time.Sleep(time.Minute)
			synctest.Wait()
			assert.Empty(t, h.fileDownloads)
			assert.Equal(t, whole, w.Body.Len() == len(content), "%d of %d bytes", w.Body.Len(), len(content))
		})
	}
}

// paced is a connection that needs a time for each piece.
type paced struct {
	slow
	pause time.Duration
}

func (p *paced) Write(b []byte) (int, error) {
	time.Sleep(p.pause)
	if !time.Now().Before(p.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return p.ResponseRecorder.Write(b)
}
