// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// slow lets only full chunks, and tests, write to the file.
func slow(c *Config) { c.FlushInterval = time.Hour }

func TestASpanIsInTheFileAfterTheFlushInterval(t *testing.T) {
	path := newFile(t)
	b := started(t, path, func(c *Config) { c.FlushInterval = 10 * time.Millisecond })
	require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, 10, 20))))
	testkit.Eventually(t, "the span in the file", func() (bool, string) {
		got := names(t, path)
		return len(got) == 1, fmt.Sprint(got)
	})
}

func TestAnEarlierFileIsKeptAtTheStart(t *testing.T) {
	path := newFile(t)
	for n := range byte(3) {
		b := started(t, path, slow)
		require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(n+1, 0, 10, 20))))
		require.NoError(t, b.signal.Shutdown(t.Context()))
	}
	assert.ElementsMatch(t, []string{"b", "c", "d"}, names(t, path))
	assert.Len(t, files(t, path), 3)
}

func TestATornFileIsRepairedAtTheStart(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow)
	for n := range byte(2) {
		require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(n+1, 0, 10, 20))))
		b.flushed()
	}
	require.NoError(t, b.signal.Shutdown(t.Context()))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, content[:len(content)-7], 0o600))

	b = started(t, path, slow)
	assert.Equal(t, "Cut a torn chunk off the end of the file. The process that wrote it ended before the chunk was whole", b.log.All()[0].Message)
	assert.NotZero(t, b.counts(t)["repaired_bytes"])
	require.NoError(t, b.signal.Shutdown(t.Context()))
	read, err := perfettofile.Open(files(t, path)[0])
	require.NoError(t, err)
	assert.Len(t, read.Slices, 1)
}

func TestAFileOfAnotherProgramIsNotTouched(t *testing.T) {
	path := newFile(t)
	require.NoError(t, os.WriteFile(path, []byte("{}\n"), 0o600))
	b := newBed(t, path)
	err := b.signal.Start(t.Context(), nil)
	require.ErrorContains(t, err, "belongs to another program")
	require.ErrorContains(t, err, path)
}

func TestAMissingDirectoryIsAnErrorWithARemedy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "spans.perfetto-trace")
	require.ErrorContains(t, newBed(t, path).signal.Start(t.Context(), nil), "create the directory "+filepath.Dir(path)+", or set create_directory to true")
	started(t, path, func(c *Config) { c.CreateDirectory = true })
}

func TestFilesAreRotatedBySizeAndOpenAlone(t *testing.T) {
	path := newFile(t)
	const count, each = 20, 2000
	b := started(t, path, slow, func(c *Config) { c.Rotation.MaxMegabytes = 1 })
	random := bytes.Repeat([]byte{0}, 8)
	for n := range count {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for i := range each {
			s := spans.AppendEmpty()
			id := uint64(n*each + i + 1)
			span(1, 0, 1000*id, 1000*id+id%999, inThread(int64(n%5), fmt.Sprint("worker-", n%5)))(s)
			hash := id * 0x9e3779b97f4a7c15
			s.SetName(fmt.Sprint(hash, hash*hash, hash*hash*hash, hash*hash*hash*hash, hash*hash*hash*hash*hash)) // names that do not compress
			s.SetSpanID(pcommon.SpanID(append(random[:0:0], byte(id), byte(id>>8), byte(id>>16), 1, 0, 0, 0, 0)))
		}
		require.NoError(t, b.consumeTraces(t.Context(), td))
	}
	require.NoError(t, b.signal.Shutdown(t.Context()))
	all := files(t, path)
	require.Greater(t, len(all), 2)
	for _, file := range all {
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.LessOrEqual(t, info.Size(), int64(mib))
	}
	seen := map[string]bool{}
	for _, read := range readAll(t, path) {
		for _, s := range read.Slices {
			require.Equal(t, fmt.Sprint("worker-", s.Track.Thread.TID), s.Track.Thread.Name)
			seen[s.Name] = true
		}
	}
	assert.Len(t, seen, count*each)
	assert.EqualValues(t, len(all)-1, telemetrytest.Sum(t, b.telemetry, prefix+"rotations"))
}

func TestTheOldestFilesAreDeleted(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow, func(c *Config) { c.Rotation.MaxAge, c.Rotation.MaxBackups = time.Minute, 2 })
	now := time.Unix(1_800_000_000, 0)
	b.now = func() time.Time { return now }
	for n := range byte(5) {
		require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(n+1, 0, 10, 20))))
		b.flushed()
		now = now.Add(time.Minute)
		b.flushed()
	}
	require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(6, 0, 10, 20))))
	b.flushed()
	assert.ElementsMatch(t, []string{"e", "f", "g"}, names(t, path))
}

func TestTooManyTracksBeginANewFile(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow, func(c *Config) { c.MaxTracks = 10 })
	for n := range 40 {
		require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, 10, 20, inThread(int64(n), "t")))))
		b.flushed()
	}
	require.NoError(t, b.signal.Shutdown(t.Context()))
	assert.Len(t, names(t, path), 40)
	for _, read := range readAll(t, path) {
		assert.LessOrEqual(t, len(read.Tracks), 10)
	}
}

func TestAllFilesTogetherAreWithinTheirBounds(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow, func(c *Config) {
		c.Rotation.MaxMegabytes, c.Rotation.MaxTotalMegabytes, c.Rotation.MaxBackupAge = 1, 2, time.Hour
	})
	now := time.Now()
	b.now = func() time.Time { return now }
	random := rand.NewChaCha8([32]byte{})
	for n := range 300 {
		text := make([]byte, 10<<10)
		_, _ = random.Read(text) // it never fails
		require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, uint64(10*n+1), uint64(10*n+5), func(s ptrace.Span) {
			s.Attributes().PutEmptyBytes("random").FromRaw(text)
		}))))
		total := int64(0)
		for _, file := range files(t, path) {
			info, err := os.Stat(file)
			require.NoError(t, err)
			total += info.Size()
		}
		require.LessOrEqual(t, total, int64(2*mib))
	}
	assert.Greater(t, b.counts(t)["rotations{reason=size}"], int64(2))
}

// Threads of one message have names that do not compress. No file is larger than allowed, or has more tracks.
func TestBoundsOfFilesHoldInsideAMessage(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	text := make([]byte, 1000)
	td := message("shop")
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for n := range 4000 {
		_, _ = random.Read(text) // it never fails
		span(1, 0, 10, 20, inThread(int64(n), base64.StdEncoding.EncodeToString(text)[:1000]))(spans.AppendEmpty())
	}
	for name, maxTracks := range map[string]int{"few tracks": 10, "many tracks": mostTracks} {
		t.Run(name, func(t *testing.T) {
			path := newFile(t)
			b := started(t, path, slow, func(c *Config) {
				c.MaxTracks, c.Rotation.MaxMegabytes, c.Rotation.MaxTotalMegabytes, c.Rotation.MaxBackups = maxTracks, 1, 2, 10_000
			})
			require.NoError(t, b.consumeTraces(t.Context(), td))
			require.NoError(t, b.signal.Shutdown(t.Context()))
			total := int64(0)
			for _, file := range files(t, path) {
				info, err := os.Stat(file)
				require.NoError(t, err)
				require.LessOrEqual(t, info.Size(), int64(mib))
				total += info.Size()
			}
			assert.LessOrEqual(t, total, int64(2*mib))
			for _, read := range readAll(t, path) {
				require.LessOrEqual(t, len(read.Tracks), maxTracks)
			}
			assert.EqualValues(t, 4000, b.counts(t)["slices"])
		})
	}
}

// Chunks that take more than usual do not make a file larger than allowed, and neither does one span.
func TestLargeSpansDoNotMakeLargeFiles(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	text := make([]byte, 12<<10)
	large := func(s ptrace.Span) {
		for n := range 2 * maxAnnotations {
			_, _ = random.Read(text) // it never fails
			s.Attributes().PutEmptyBytes(fmt.Sprint(n)).FromRaw(text)
		}
		for n := range 10 {
			event := s.Events().AppendEmpty()
			event.SetTimestamp(pcommon.Timestamp(10 + n))
			s.Links().AppendEmpty().SetSpanID(pcommon.SpanID{9})
			list := event.Attributes().PutEmptySlice("list")
			for range 2 * maxElements {
				list.AppendEmpty().SetInt(1)
			}
		}
	}
	path := newFile(t)
	b := started(t, path, slow, func(c *Config) { c.Rotation.MaxMegabytes = 1 })
	for n := range byte(5) {
		// A usual chunk leaves no room for the next one.
		require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, 10, 20, func(s ptrace.Span) {
			for i := range 20 {
				_, _ = random.Read(text) // it never fails
				s.Attributes().PutEmptyBytes(fmt.Sprint(i)).FromRaw(text)
			}
		}))))
		b.flushed()
		require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(n+2, 0, 10, 30, large))))
		b.flushed()
	}
	require.NoError(t, b.signal.Shutdown(t.Context()))
	for _, file := range files(t, path) {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(mib))
	}
	assert.Len(t, names(t, path), 10)
	counts := b.counts(t)
	assert.Greater(t, counts["omitted"], int64(5*maxAnnotations))
	assert.NotZero(t, counts["rotations{reason=size}"])
	assert.Contains(t, b.lines(), "Left out attributes")
}

// The directory is gone, so no new file can be begun: memory stays bounded, and the next spans are written when it is back.
func TestWhileNoNewFileCanBeBegunNothingGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traces", "spans.perfetto-trace")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	b := started(t, path, slow, func(c *Config) { c.MaxTracks = 10 })
	write := func(name string, thread int64) {
		require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, 10, 20, inThread(thread, name)))))
		b.flushed()
	}
	write("first", 1)
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	for n := range int64(100) {
		write("lost", n)
		require.LessOrEqual(t, b.writer.Tracks(), 10)
	}
	assert.EqualValues(t, 100, b.counts(t)["dropped_slices"])
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	write("last", 1)
	require.NoError(t, b.signal.Shutdown(t.Context()))
	read := readAll(t, path)
	require.Len(t, read, 1)
	require.Len(t, read[0].Slices, 1)
	assert.Equal(t, "last", read[0].Slices[0].Track.Thread.Name)
	for _, entry := range b.log.FilterMessageSnippet("Dropped spans").All() {
		assert.Contains(t, fmt.Sprint(entry.ContextMap()["error"]), "create the directory "+filepath.Dir(path)+", or set create_directory to true")
	}
}

func TestSpansThatOtherProgramsOrder(t *testing.T) {
	for name, test := range map[string][]func(ptrace.Span){
		"callees first": {span(3, 2, 30, 40), span(2, 1, 20, 50), span(1, 0, 10, 60)},
		"callers first": {span(1, 0, 10, 60), span(2, 1, 20, 50), span(3, 2, 30, 40)},
		"equal times":   {span(2, 1, 10, 60), span(3, 2, 10, 60), span(1, 0, 10, 60)},
	} {
		t.Run(name, func(t *testing.T) {
			path := newFile(t)
			b := started(t, path, slow)
			require.NoError(t, b.consumeTraces(t.Context(), message("shop", test...)))
			require.NoError(t, b.signal.Shutdown(t.Context()))
			depths := map[string]int{}
			for _, s := range readAll(t, path)[0].Slices {
				depths[s.Name] = s.Depth
			}
			assert.Equal(t, map[string]int{"b": 0, "c": 1, "d": 2}, depths)
		})
	}
}

func TestACallOfAnotherServiceAndALinkAreFlows(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow)
	kind := func(k ptrace.SpanKind) func(ptrace.Span) { return func(s ptrace.Span) { s.SetKind(k) } }
	linkTo := func(id byte) func(ptrace.Span) {
		return func(s ptrace.Span) {
			link := s.Links().AppendEmpty()
			link.SetTraceID(pcommon.TraceID{1})
			link.SetSpanID(pcommon.SpanID{id})
		}
	}
	require.NoError(t, b.consumeTraces(t.Context(), message("server", span(2, 1, 20, 30, kind(ptrace.SpanKindServer)))))
	require.NoError(t, b.consumeTraces(t.Context(), message("client", span(1, 0, 10, 40, kind(ptrace.SpanKindClient)))))
	require.NoError(t, b.consumeTraces(t.Context(), message("other", span(3, 0, 50, 60, linkTo(4)))))
	require.NoError(t, b.consumeTraces(t.Context(), message("other", span(4, 0, 45, 70))))
	cut := func(s ptrace.Span) {
		linkTo(6)(s)
		s.Links().At(0).Attributes().PutStr("callbraid.link", "continuation")
	}
	require.NoError(t, b.consumeTraces(t.Context(), message("cut", span(5, 0, 80, 90, cut), span(6, 0, 75, 95))))
	require.NoError(t, b.signal.Shutdown(t.Context()))
	flows := map[string][]uint64{}
	for _, s := range readAll(t, path)[0].Slices {
		flows[s.Name] = s.Flows
	}
	assert.Len(t, flows["b"], 1)
	assert.Equal(t, flows["b"], flows["c"], "the call")
	assert.Len(t, flows["d"], 1)
	assert.Equal(t, flows["d"], flows["e"], "the link")
	assert.Empty(t, flows["f"], "the call is inside its caller")
	assert.Empty(t, flows["g"])
}

func TestWaitingLinksAreBounded(t *testing.T) {
	var l links
	for n := range uint64(3*maxWaitingLinks + 1) {
		l.wait(9, n)
	}
	assert.Len(t, l.of(9), maxWaitingLinks+1)
	assert.Empty(t, l.of(9))
}

func TestErrorsAndTruncatedCallsAreVisible(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow)
	require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, 10, 20, func(s ptrace.Span) {
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage("no stock")
		s.Attributes().PutStr("callbraid.truncated", "discarded")
		s.Attributes().PutEmptyMap("nested").PutEmptySlice("list").AppendEmpty().SetInt(7)
	}))))
	require.NoError(t, b.signal.Shutdown(t.Context()))
	read := readAll(t, path)[0]
	s := read.Slices[0]
	assert.Equal(t, []string{"truncated", "error"}, s.Categories)
	assert.Equal(t, map[string]any{
		"trace_id": "01000000000000000000000000000000", "status.message": "no stock", "callbraid.truncated": "discarded",
		"nested": map[string]any{"list": []any{int64(7)}},
	}, s.Args)
	for _, track := range read.Tracks {
		assert.True(t, track == s.Track || track.Description == "service.name: shop", "%+v", track)
	}
}

func TestTimesThatReadersDoNotAcceptAreCounted(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow)
	require.NoError(t, b.consumeTraces(t.Context(), message("shop",
		span(1, 0, 0, 20), span(2, 0, 1<<63, 1<<63+1), span(3, 0, 10, 1<<63),
		span(4, 0, 10, 20, func(s ptrace.Span) { s.Events().AppendEmpty().SetTimestamp(1 << 63) }))))
	require.NoError(t, b.signal.Shutdown(t.Context()))
	assert.Equal(t, []string{"e"}, names(t, path))
	assert.EqualValues(t, 4, b.counts(t)["invalid_times"])
}

func TestSpansWithoutAnEndAreMarkedAndCounted(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow)
	require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, 10, 0), span(2, 0, 30, 20), span(3, 0, 40, 40))))
	require.NoError(t, b.signal.Shutdown(t.Context()))
	categories, ends := map[string][]string{}, map[string]uint64{}
	for _, s := range readAll(t, path)[0].Slices {
		categories[s.Name], ends[s.Name] = s.Categories, s.End
	}
	assert.Equal(t, map[string][]string{"b": {"invalid_end"}, "c": {"invalid_end"}, "d": nil}, categories)
	assert.Equal(t, map[string]uint64{"b": 10, "c": 30, "d": 40}, ends)
	assert.EqualValues(t, 2, b.counts(t)["invalid_ends"])
	assert.Equal(t, []string{"Wrote spans without a length"}, b.lines())
}

// A message of many spans, or with a large resource, does not let the exporter keep memory.
func TestTheSizeOfAMessageDoesNotStay(t *testing.T) {
	b := started(t, newFile(t), slow)
	td := message("shop")
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for range 4 * keptSpans {
		span(1, 0, 10, 20)(spans.AppendEmpty())
	}
	require.NoError(t, b.consumeTraces(t.Context(), td))
	assert.LessOrEqual(t, cap(b.reader.spans), keptSpans)
	resource := td.ResourceSpans().At(0).Resource()
	for n := range 2 * maxAnnotations {
		resource.Attributes().PutStr(fmt.Sprint(n), strings.Repeat("x", 100<<10))
	}
	b.reader.begin(resource)
	assert.LessOrEqual(t, len(b.reader.describeResource()), maxAnnotations*(maxDescribedBytes+16))
}

func TestAFileIsForOneExporter(t *testing.T) {
	path := newFile(t)
	started(t, path)
	require.ErrorContains(t, newBed(t, path).signal.Start(t.Context(), nil), "another exporter or collector writes to "+path)
}

func TestAShutdownIsSafeTwiceAndWithoutAStart(t *testing.T) {
	b := newBed(t, filepath.Join(t.TempDir(), "none.perfetto-trace"))
	require.NoError(t, b.signal.Shutdown(t.Context()))
	require.NoError(t, b.signal.Shutdown(t.Context()))
}

func TestConfigurationsNameFieldAndRemedy(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*Config)
	}{
		{"path is empty: set it to a file, such as ./spans.perfetto-trace", func(c *Config) { c.Path = "" }},
		{"flush_interval is 0s: set it to 10ms to 1h0m0s", func(c *Config) { c.FlushInterval = 0 }},
		{"max_tracks is 9: set it to 10 to 1000000", func(c *Config) { c.MaxTracks = 9 }},
		{"max_counters is -1: set it to 0 to 1000000", func(c *Config) { c.MaxCounters = -1 }},
		{"rotation.max_total_megabytes is 100: set it to 128 to", func(c *Config) { c.Rotation.MaxTotalMegabytes = 100 }},
		{"rotation.max_backup_age is 1ms: set it to 1s to", func(c *Config) { c.Rotation.MaxBackupAge = time.Millisecond }},
		{"rotation.max_megabytes is 2000: set it to 1 to 1024", func(c *Config) { c.Rotation.MaxMegabytes = 2000 }},
		{"rotation.max_backups is 0: set it to 1 to 10000", func(c *Config) { c.Rotation.MaxBackups = 0 }},
		{"rotation.max_age is 1ms: set it to 1s to", func(c *Config) { c.Rotation.MaxAge = time.Millisecond }},
		{`file_permissions is "0400": set it`, func(c *Config) { c.FilePermissions = "0400" }},
		{`directory_permissions is "rw": set it`, func(c *Config) { c.DirectoryPermissions = "rw" }},
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Path = "x"
		require.NoError(t, cfg.Validate())
		test.change(cfg)
		require.ErrorContains(t, cfg.Validate(), test.want)
	}
}

// FuzzTexts has text of any kind in all places of a file.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{"", "a", "\xff\xfe", "<script>", strings.Repeat("ä", 20_000)} {
		f.Add(text, uint64(1), uint64(2), int64(3))
	}
	path := filepath.Join(f.TempDir(), "spans.perfetto-trace")
	f.Fuzz(func(t *testing.T, text string, start, end uint64, thread int64) {
		b := newBed(t, path)
		for n := range byte(2) {
			b.reader.begin(message(text, span(1, 0, start, end)).ResourceSpans().At(0).Resource())
			b.reader.read(scopedSpan{message(text, span(n+1, n, start, end, inThread(thread, text), func(s ptrace.Span) {
				s.SetName(text)
				s.Attributes().PutStr(text, text)
				s.Attributes().PutStr("code.function.name", text)
				s.Attributes().PutStr("callbraid.truncated", text)
				s.Attributes().PutEmptyMap("m").PutEmptyBytes(text).FromRaw([]byte(text))
				event := s.Events().AppendEmpty()
				event.SetName(text)
				event.SetTimestamp(pcommon.Timestamp(start))
			})).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0), text})
		}
		record, err := b.writer.Record()
		require.NoError(t, err)
		read, err := perfettofile.Read(record)
		require.NoError(t, err)
		for _, s := range read.Slices {
			require.False(t, s.Open)
			if !s.Instant {
				require.Equal(t, max(start, end), s.End)
			}
		}
	})
}
