// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lttngdata opens the captures of LTTng in testdata, and runs babeltrace2, the reference reader of CTF.
package lttngdata

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/callbraid/callbraid/internal/lttng/ctf/ctfdir"
)

// Captures are the captures in testdata/lttng/live, with their numbers of events.
var Captures = []struct {
	Name      string
	Events    int
	Discarded uint64
}{
	{Name: "jul1", Events: 282},
	{Name: "julctx", Events: 18},
	{Name: "cygok", Events: 245},
	{Name: "cyg1", Events: 7886, Discarded: 8951},
	{Name: "tp1", Events: 152},
	{Name: "meta1", Events: 656},
}

// CaptureFile returns the path of a capture's zip file, seen from a directory of the repository.
func CaptureFile(t testing.TB, name string) string {
	t.Helper()
	inRoot := filepath.Join("testdata", "lttng", "live", name+".zip")
	for path := inRoot; len(path) < len(inRoot)+100; path = filepath.Join("..", path) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("expected %s in a directory above, got none", inRoot)
	return ""
}

// OpenCapture opens the files of a capture until the end of the test.
func OpenCapture(t testing.TB, name string) fs.FS {
	t.Helper()
	archive, err := zip.OpenReader(CaptureFile(t, name))
	require(t, err)
	t.Cleanup(func() { _ = archive.Close() })
	files, err := fs.Sub(archive, name)
	require(t, err)
	return files
}

// CaptureText returns a text file of a capture.
func CaptureText(t testing.TB, name, file string) string {
	t.Helper()
	text, err := fs.ReadFile(OpenCapture(t, name), file)
	require(t, err)
	return string(text)
}

// OpenTrace opens the only trace of a capture.
func OpenTrace(t testing.TB, files fs.FS) *ctfdir.Dir {
	t.Helper()
	dirs, err := ctfdir.Find(files, "ctf")
	require(t, err)
	if len(dirs) != 1 {
		t.Fatalf("expected one trace, got %q", dirs)
	}
	dir, err := ctfdir.Open(files, dirs[0])
	require(t, err)
	if notes := dir.Trace.Metadata().Notes; len(notes) > 0 {
		t.Fatalf("expected metadata without unknown parts, got %q", notes)
	}
	return dir
}

// Packets returns the packets of all streams of a trace, stream by stream.
func Packets(t testing.TB, dir *ctfdir.Dir) (all [][][]byte) {
	t.Helper()
	for _, name := range dir.Streams {
		stream, err := dir.Stream(name)
		require(t, err)
		var packets [][]byte
		for {
			packet, err := stream.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require(t, err)
			packets = append(packets, bytes.Clone(packet))
		}
		require(t, stream.Close())
		all = append(all, packets)
	}
	return all
}

func require(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
