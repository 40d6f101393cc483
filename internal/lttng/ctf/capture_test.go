// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/ctfdir"
	"github.com/callbraid/callbraid/internal/lttng/ctf/printed"
)

// captures are the recordings of testdata/lttng/live, with the expected numbers of events.
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
	archive, err := zip.OpenReader(filepath.Join("..", "..", "..", "testdata", "lttng", "live", name+".zip"))
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
	require.Empty(t, dir.Trace.Metadata().Notes)
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
			if err != nil {
				require.EqualError(t, err, "EOF")
				break
			}
			packets = append(packets, bytes.Clone(packet))
		}
		require.NoError(t, stream.Close())
		all = append(all, packets)
	}
	return all
}

// readAll reads all packets of one stream and calls event for each event.
func readAll(t testing.TB, trace *ctf.Trace, packets [][]byte, event func(*ctf.Reader)) {
	t.Helper()
	r := ctf.NewReader(trace)
	for _, packet := range packets {
		require.NoError(t, r.Begin(packet))
		for r.Next() {
			event(r)
		}
		require.NoError(t, r.Err())
	}
}

// printedEvents returns the texts of the events in a file of a capture.
func printedEvents(t testing.TB, files fs.FS, name string) []string {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	require.NoError(t, err)
	events, err := printed.Split(string(text))
	require.NoError(t, err)
	return events
}
