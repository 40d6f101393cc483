// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
)

const anyTracks = 1000

// file collects the records of a writer.
type file struct {
	*Writer
	t       testing.TB
	process *Process
	content []byte
}

func newFile(t testing.TB) *file {
	f := &file{Writer: NewWriter(anyTracks, anyTracks), t: t}
	f.process = f.Process(ProcessID{Service: "shop", PID: "42"}, func() string { return "host.name: here" })
	return f
}

// flush ends a chunk.
func (f *file) flush() {
	f.t.Helper()
	record, err := f.Record()
	require.NoError(f.t, err)
	f.content = append(f.content, record...)
}

func (f *file) read() *perfettofile.Trace {
	f.t.Helper()
	f.flush()
	read, err := perfettofile.Read(f.content)
	require.NoError(f.t, err)
	return read
}

// call is a slice by its times.
type call struct {
	name         string
	start, end   uint64
	self, parent Key
}

func (c call) slice() Slice {
	return Slice{Name: c.name, Start: c.start, End: c.end, Self: c.self, Parent: c.parent, Trace: 1}
}

// drawn describes the slices of a file: each track with its slices, indented by depth.
func drawn(trace *perfettofile.Trace) string {
	byTrack := map[uint64][]string{}
	for _, s := range trace.Slices {
		times := fmt.Sprintf("%d-%d", s.Start, s.End)
		switch {
		case s.Instant:
			times = fmt.Sprint(s.Start)
		case s.Open:
			times = fmt.Sprintf("%d-open", s.Start)
		}
		byTrack[s.Track.UUID] = append(byTrack[s.Track.UUID], strings.Repeat("> ", s.Depth)+s.Name+" "+times)
	}
	var tracks []string
	for _, track := range trace.Tracks {
		if lines := byTrack[track.UUID]; len(lines) > 0 {
			tracks = append(tracks, fmt.Sprintf("%03d: %s", track.UUID, strings.Join(lines, "; ")))
		}
	}
	slices.Sort(tracks)
	for i := range tracks {
		tracks[i] = tracks[i][5:]
	}
	return strings.Join(tracks, " | ")
}
