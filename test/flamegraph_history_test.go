// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/browser"
)

// storedCollector is a collector whose call trees are stored, over restarts.
type storedCollector struct {
	*kit.Collector
	configuration, otlp, site, folder string
}

// startStored starts it. The settings are those of the storage.
func startStored(t *testing.T, settings string) *storedCollector {
	t.Helper()
	pages := testkit.Address(t)
	s := &storedCollector{otlp: testkit.Address(t), site: "http://" + pages, folder: t.TempDir()}
	s.configuration = fmt.Sprintf(`
extensions: {file_storage: {directory: %q, %s}, health_check: {endpoint: "${env:HEALTH}"}}
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {flame_graph: {endpoint: %q, storage: file_storage, history: {save_interval: 1s}}}
service:
  extensions: [health_check, file_storage]
  pipelines: {traces: {receivers: [otlp], exporters: [flame_graph]}}
`, s.folder, settings, s.otlp, pages)
	s.start(t)
	return s
}

func (s *storedCollector) start(t *testing.T) {
	t.Helper()
	s.Collector = kit.Start(t, s.configuration)
}

// send sends calls of main, each of which calls work, and waits until they are in the tree.
func (s *storedCollector) send(t *testing.T, calls int) {
	t.Helper()
	before := s.calls(t, "/services/shop/")
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "shop")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for range calls {
		trace, main := [16]byte{}, [8]byte{}
		for i := range trace {
			trace[i], main[i/2] = byte(rand.Uint32()), byte(rand.Uint32())
		}
		for i, name := range []string{"main", "work"} {
			span := spans.AppendEmpty()
			span.SetName(name)
			span.SetTraceID(trace)
			span.SetStartTimestamp(1_700_000_000_000_000_000)
			span.SetEndTimestamp(1_700_000_000_000_001_000)
			if span.SetSpanID(main); i == 1 {
				span.SetSpanID([8]byte{1})
				span.SetParentSpanID(main)
			}
		}
	}
	require.NoError(t, kit.SendOTLP(s.otlp, td))
	testkit.Eventually(t, "the calls are in the tree", func() (bool, string) {
		return s.calls(t, "/services/shop/") == before+calls, s.Log()
	})
}

func (s *storedCollector) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	response, err := http.Get(s.site + path)
	require.NoError(t, err)
	defer response.Body.Close() // only read
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

var workTime = regexp.MustCompile(`(?m)^main;work ([0-9]+)$`)

// calls is the number of calls of work in a tree. Each takes a microsecond.
func (s *storedCollector) calls(t *testing.T, path string) int {
	t.Helper()
	_, body := s.get(t, path+"profile.folded")
	found := workTime.FindStringSubmatch(body)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n / 1000
}

var windowLinks = regexp.MustCompile(`services/shop/at/(20\d\d-\d\d-\d\d(T\d\d)?Z)/`)

// windows are the links of the page of the service to its hours, and to its days.
func (s *storedCollector) windows(t *testing.T) (hours, days []string) {
	t.Helper()
	_, body := s.get(t, "/services/shop/")
	for _, found := range windowLinks.FindAllStringSubmatch(body, -1) {
		link := "/services/shop/at/" + found[1] + "/"
		if found[2] != "" {
			hours = append(hours, link)
		} else if !slices.Contains(days, link) {
			days = append(days, link)
		}
	}
	return hours, days
}

// requireCalls waits until the windows have so many calls, and so has the tree. Their links appear with the first save; the test may run at the end of an hour.
func (s *storedCollector) requireCalls(t *testing.T, want int) {
	t.Helper()
	sum := func(windows []string) (sum int) {
		for _, window := range windows {
			sum += s.calls(t, window)
		}
		return sum
	}
	testkit.Eventually(t, "the windows have the calls", func() (bool, string) {
		hours, days := s.windows(t)
		return sum(hours) == want && sum(days) == want, fmt.Sprint(hours, days, sum(hours), sum(days), s.Log())
	})
	assert.Equal(t, want, s.calls(t, "/services/shop/"), "the tree")
}

// awaitStored waits until a save that began now has ended: the second one from now.
func (s *storedCollector) awaitStored(t *testing.T) {
	t.Helper()
	file := only(t, filepath.Join(s.folder, "exporter_flame_graph_*"))
	for range 2 {
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		testkit.Eventually(t, "a save", func() (bool, string) {
			now, err := os.ReadFile(file)
			return err == nil && !bytes.Equal(before, now), ""
		})
	}
}

func only(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.Len(t, files, 1, pattern)
	return files[0]
}

func TestCallTreesSurviveARestart(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	s := startStored(t, "fsync: false")
	s.send(t, 10)
	s.requireCalls(t, 10)
	hours, _ := s.windows(t)
	s.send(t, 2)
	s.Stop(t)

	s.start(t)
	s.requireCalls(t, 12)
	assert.Positive(t, s.calls(t, hours[0]), "the link of before")
	s.send(t, 30)
	s.requireCalls(t, 42)
	s.Reload(t)
	testkit.Eventually(t, "the collector has reloaded", func() (bool, string) {
		return strings.Count(s.Log(), "Call trees of the last collector are restored") == 2, s.Log()
	})
	s.awaitPages(t)
	s.requireCalls(t, 42)

	// A person finds the hour on the page, and its flame graph.
	b.Open(t, s.site)
	follow(t, b, "shop")
	assert.Contains(t, textOf(t, b, "body"), "Hours and days")
	b.Screenshot(t, "hours-and-days")
	b.Open(t, s.site+hours[0])
	text := textOf(t, b, "body")
	assert.Regexp(t, `20\d\d-\d\d-\d\d \d\d:00 to \d\d:00 UTC: 2 call paths`, text)
	assert.Contains(t, text, "work")
	b.Screenshot(t, "hour")
	follow(t, b, "Flame graph")
	awaitScript(t, b, "the frames of the hour", `document.body.innerText.includes('work')`)
	assert.NotContains(t, s.Log(), "without saving")
	s.Stop(t)
}

// awaitPages waits until the pages are served again.
func (s *storedCollector) awaitPages(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "the pages are served", func() (bool, string) {
		response, err := http.Get(s.site)
		if err != nil {
			return false, err.Error()
		}
		response.Body.Close() // only its status
		return response.StatusCode == http.StatusOK, response.Status
	})
}

func TestCallTreesSurviveAKill(t *testing.T) {
	t.Parallel()
	s := startStored(t, "fsync: false")
	s.send(t, 10)
	s.requireCalls(t, 10)
	s.awaitStored(t)
	s.Kill()
	s.start(t)
	s.requireCalls(t, 10)
	s.send(t, 5)
	s.requireCalls(t, 15)
	hours, _ := s.windows(t)
	_, page := s.get(t, hours[len(hours)-1])
	assert.Contains(t, page, "The collector ended without its last save: calls that arrived after ")
	assert.Equal(t, 1, strings.Count(s.Log(), "The last collector ended without saving its call trees"))
	s.Stop(t)
}

// Bytes of stored trees are damaged, then the file of the storage is no such file any more.
func TestDamagedCallTreesDoNotFailTheStart(t *testing.T) {
	t.Parallel()
	s := startStored(t, "fsync: false")
	s.send(t, 10)
	s.requireCalls(t, 10)
	s.Stop(t)
	file := only(t, filepath.Join(s.folder, "exporter_flame_graph_*"))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	damaged := 0
	for at := 0; ; damaged++ {
		next := bytes.Index(data[at:], []byte("cbct\x02"))
		if next < 0 {
			break
		}
		at += next + 20
		data[at] ^= 0x55
	}
	require.Positive(t, damaged)
	require.NoError(t, os.WriteFile(file, data, 0o600))

	s.start(t)
	assert.Contains(t, s.Log(), "A stored call tree cannot be read: the tree begins again")
	assert.Contains(t, s.Log(), "torn or damaged: expected the checksum")
	_, page := s.get(t, "/")
	found := windowLinks.FindStringSubmatch(page)
	require.NotNil(t, found, page)
	status, page := s.get(t, "/services/shop/at/"+found[1]+"/")
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Contains(t, page, "the window cannot be read: "+found[1]+": it is torn or damaged: expected the checksum")
	s.send(t, 3)
	s.requireCalls(t, 3)
	assert.Positive(t, s.Metric(t, "otelcol_exporter_flame_graph_dropped_stored_trees", `reason="unreadable"`))
	s.Stop(t)

	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("no database "), 10_000), 0o600))
	s.start(t)
	assert.Contains(t, s.Log(), "The storage cannot be opened: call trees are in memory only")
	s.send(t, 4)
	assert.Equal(t, 4, s.calls(t, "/services/shop/"))
	s.Stop(t)
}

// The storage has no room for a tree with long names.
func TestAFullStorageIsShown(t *testing.T) {
	t.Parallel()
	s := startStored(t, "max_size: 1048576")
	s.send(t, 10)
	s.requireCalls(t, 10)
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "large")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for range 20_000 {
		name := make([]byte, 0, 64)
		for range 8 {
			name = strconv.AppendUint(name, rand.Uint64(), 36)
		}
		spans.AppendEmpty().SetName(string(name))
	}
	require.NoError(t, kit.SendOTLP(s.otlp, td))
	testkit.Eventually(t, "a note", func() (bool, string) {
		_, page := s.get(t, "/")
		return strings.Contains(page, "Call trees cannot be stored: "), s.Log()
	})
	s.send(t, 1)
	s.requireCalls(t, 11)
	s.Stop(t)
	assert.Equal(t, 1, strings.Count(s.Log(), "Call trees cannot be stored"), s.Log())
	s.start(t)
	s.requireCalls(t, 10)
	hours, _ := s.windows(t)
	_, page := s.get(t, hours[len(hours)-1])
	assert.Contains(t, page, "The collector ended without its last save")
	s.Stop(t)
}
