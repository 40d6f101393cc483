// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
	"github.com/callbraid/callbraid/internal/testkit/storagetest"
)

// packetsOf returns the packets of a stream from one number to another.
func packetsOf(s *synthetic.Session, stream, from, to int) (data []byte) {
	for j := from; j < to; j++ {
		data = append(data, packetBytes(s, stream, j)...)
	}
	return data
}

// moveChunk creates a directory with packets of each stream, complete from its first moment.
func moveChunk(t testing.TB, dir string, s *synthetic.Session, from, to int) {
	t.Helper()
	hidden := filepath.Join(t.TempDir(), "chunk")
	require.NoError(t, os.MkdirAll(hidden, 0o700))
	writeFile(t, filepath.Join(hidden, "metadata"), s.Metadata())
	for i := range s.Streams {
		writeFile(t, filepath.Join(hidden, fmt.Sprintf("channel0_%d", i)), packetsOf(s, i, from, to))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o700))
	require.NoError(t, os.Rename(hidden, dir))
}

func TestARingOfFilesIsReadWhenAFileOfTheSameSizeReplacesOneThatWasRead(t *testing.T) {
	for how, remove := range map[string]func(string) error{
		"a new file": os.Remove, "the same file, cut before": func(string) error { return nil },
	} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			s := sold("shop", 12, 5)
			name := func(stream, file int) string {
				return filepath.Join(dir, fmt.Sprintf("channel0_%d_%d", stream, file))
			}
			writeFile(t, filepath.Join(dir, "metadata"), s.Metadata())
			for i := range 2 {
				writeFile(t, name(i, 0), packetsOf(s, i, 0, 2))
				writeFile(t, name(i, 1), packetsOf(s, i, 2, 4))
			}
			b := newBed(t, dir, watching(50*time.Millisecond, time.Hour))
			b.awaitNumbers(upTo(40))
			for i := range 2 {
				require.NoError(t, remove(name(i, 0)))
				writeFile(t, name(i, 0), packetsOf(s, i, 4, 6))
			}
			b.awaitNumbers(upTo(60))
			b.Shutdown()
			assert.Zero(t, b.Counter("packets_lost"))
			assert.Zero(t, b.Counter("packets_damaged"))
		})
	}
}

func TestAChunkThatMovesBeforeItIsReadIsReadInItsNewPlace(t *testing.T) {
	for name, again := range map[string]bool{"after lttng stop": false, "after lttng rotate": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			events := fewer(testing.Short(), 60_000)
			s := alternating("shop", events)
			part := func(to string, from, end int) {
				require.NoError(t, os.MkdirAll(to, 0o700))
				writeFile(t, filepath.Join(to, "metadata"), s.Metadata())
				for i := range 2 {
					n := len(s.Streams[i].Packets)
					writeFile(t, filepath.Join(to, fmt.Sprintf("channel0_%d", i)), packetsOf(s, i, from*n/3, end*n/3))
				}
			}
			current := filepath.Join(dir, "ust")
			second := 3
			if again {
				second = 2
			}
			part(filepath.Join(dir, "archives", "1", "ust"), 0, 1)
			part(current, 1, second)
			// max_delay bounds the time of the search for the moved files, which a busy machine delays.
			b := unstartedBed(t, filepath.Join(dir, "**"), watching(3*time.Second, time.Hour), func(_ *bed, c *Config) { c.Limits.MaxQueuedLogs = 10 })
			b.receiver.env.Settings.Limits.AheadBytes = 1
			var hung atomic.Int64
			b.receiver.env.Now = func() time.Time { return time.Now().Add(time.Duration(hung.Load())) }
			release := b.Logs.Hang(false)
			b.Start()
			b.Await("a delivery", func() bool { return b.Logs.Calls().Begun > 0 })
			moveDirectory(t, current, filepath.Join(dir, "archives", "2", "ust"))
			if again {
				part(current, 2, 3)
			}
			hung.Store(int64(time.Minute)) // longer than max_delay: the trace is quiet until the files are found
			release()
			b.Await("all events", func() bool { return len(b.numbers()) >= events })
			b.Shutdown()
			require.True(t, slices.Equal(upTo(events), b.numbers()), "each event arrives once, in order")
			assert.Zero(t, b.Counter("packets_damaged"))
			assert.Zero(t, b.Counter("packets_lost"))
		})
	}
}

// lttng rotate moves the current directory, and makes it again. The session may look for files in between.
func TestADirectoryThatARotationMakesAgainIsRead(t *testing.T) {
	dir := t.TempDir()
	s := sold("shop", 12, 5)
	current := filepath.Join(dir, "ust")
	moveChunk(t, filepath.Join(dir, "archives", "1", "ust"), s, 0, 2)
	moveChunk(t, current, s, 2, 4)
	b := newBed(t, filepath.Join(dir, "**"), watching(20*time.Millisecond, time.Hour))
	b.awaitNumbers(upTo(40))
	moveDirectory(t, current, filepath.Join(dir, "archives", "2", "ust"))
	reader := b.receiver.reader
	b.Await("the trace forgets the directory", func() bool {
		trace, known := reader.traceOf(current)
		return known && !trace.Has(current)
	})
	moveChunk(t, current, s, 4, 6)
	b.awaitNumbers(upTo(60))
	b.Shutdown()
	assert.Zero(t, b.Counter("packets_lost"))
}

func moveDirectory(t testing.TB, from, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
	require.NoError(t, os.Rename(from, to))
}

// lateFile is the line about a file that appeared after later packets had been read.
const lateFile = "A file appeared after later packets had been read: its packets are left out"

func TestAChunkThatAppearsAfterALaterOneIsLostAndNamed(t *testing.T) {
	dir := t.TempDir()
	s := sold("shop", 12, 5)
	b := newBed(t, filepath.Join(dir, "**"), watching(20*time.Millisecond, time.Hour))
	moveChunk(t, filepath.Join(dir, "chunk2"), s, 2, 4)
	b.awaitNumbers(upTo(40)[20:])
	moveChunk(t, filepath.Join(dir, "chunk1"), s, 0, 2)
	line := b.AwaitLine(lateFile)
	assert.Contains(t, line.ContextMap()["error"], "expected packets from sequence number 2 on, got 2 earlier ones")
	b.Await("lost packets of both streams", func() bool { return b.Counter("packets_lost") == 4 })
	moveChunk(t, filepath.Join(dir, "chunk3"), s, 4, 6)
	b.awaitNumbers(upTo(60)[20:])
	b.Shutdown()
	assert.Zero(t, b.Counter("packets_damaged"))
	assert.EqualValues(t, 4, b.Counter("packets_lost"), "each file is reported once")
}

func TestACollectorThatContinuesNamesAChunkBeforeItsPosition(t *testing.T) {
	dir, kept := t.TempDir(), storagetest.New()
	s := sold("shop", 8, 5)
	moveChunk(t, filepath.Join(dir, "chunk2"), s, 2, 4)
	assert.Len(t, readAll(t, dir, storing(kept)).numbers(), 20)
	moveChunk(t, filepath.Join(dir, "chunk1"), s, 0, 2)
	b := readAll(t, dir, storing(kept))
	assert.Empty(t, b.numbers())
	assert.EqualValues(t, 4, b.Counter("packets_lost"))
	assert.EqualValues(t, 2, b.AwaitLine("All traces are read").ContextMap()["late_files"])
}
