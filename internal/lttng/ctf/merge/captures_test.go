// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/ctfdir"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// captures are the recordings of testdata/lttng/live.
var captures = []struct {
	name      string
	events    int
	discarded uint64
}{
	{name: "jul1", events: 282},
	{name: "julctx", events: 18},
	{name: "cygok", events: 245},
	{name: "cyg1", events: 7886, discarded: 8951},
	{name: "tp1", events: 152},
	{name: "meta1", events: 656},
}

// openCapture opens the files of a capture.
func openCapture(t testing.TB, name string) fs.FS {
	t.Helper()
	archive, err := zip.OpenReader(filepath.Join("..", "..", "..", "..", "testdata", "lttng", "live", name+".zip"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, archive.Close()) })
	files, err := fs.Sub(archive, name)
	require.NoError(t, err)
	return files
}

// openTrace opens the only trace of a capture.
func openTrace(t testing.TB, files fs.FS) *ctfdir.Dir {
	t.Helper()
	dirs, err := ctfdir.Find(files, "ctf")
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	dir, err := ctfdir.Open(files, dirs[0])
	require.NoError(t, err)
	return dir
}

// packetsOf returns the packets of all streams of a trace, stream by stream.
func packetsOf(t testing.TB, dir *ctfdir.Dir) [][][]byte {
	t.Helper()
	var all [][][]byte
	for _, name := range dir.Streams {
		stream, err := dir.Stream(name)
		require.NoError(t, err)
		var packets [][]byte
		for {
			packet, err := stream.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			packets = append(packets, bytes.Clone(packet))
		}
		require.NoError(t, stream.Close())
		all = append(all, packets)
	}
	return all
}

// printed matches the time and the name of each event in a text of babeltrace.
var printed = regexp.MustCompile(`(?m)^timestamp = ([0-9:.]+), .*?, name = ([^,]+), `)

func TestMergedEventsOfCapturesAreInTheOrderOfTheReferenceReader(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			files := openCapture(t, c.name)
			dir := openTrace(t, files)
			m := merge.New(dir.Trace, merge.Options{})
			for i, packets := range packetsOf(t, dir) {
				s := m.AddStream(uint64(i), dir.Streams[i])
				for _, packet := range packets {
					s.Packet(packet, nil)
				}
				s.End()
			}
			var got []string
			var discarded uint64
			var open int
			for kind := m.Next(); kind != merge.Nothing; kind = m.Next() {
				switch kind {
				case merge.Event:
					assert.False(t, m.Late)
					assert.Equal(t, m.Event.UnixNano(), m.Time)
					got = append(got, line(m))
				case merge.LossBegin:
					assert.Equal(t, merge.Discarded, m.Loss.Cause)
					assert.LessOrEqual(t, m.Loss.From, m.Loss.To)
					discarded += m.Loss.Count
					open++
				case merge.LossEnd:
					open--
				}
			}
			require.NoError(t, m.Err())
			assert.Zero(t, m.Waiting())
			assert.Zero(t, open)
			assert.Equal(t, c.discarded, discarded)
			assert.Len(t, got, c.events)
			require.Equal(t, strings.Join(referenceLines(t, files), "\n"), strings.Join(got, "\n"))
		})
	}
}

// line returns the time and the name of the last event, in the format of the reference reader.
func line(m *merge.Merger) string {
	return time.Unix(0, m.Time).UTC().Format("15:04:05.000000000 ") + m.Event.Class.Name
}
