// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/ctfdir"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// liveTimer is the interval of promises in quiet streams of a session that is made of files.
const liveTimer = 200 * time.Millisecond

// FromDirectory returns a session of all CTF traces in a directory and below, as if they were recorded now. A packet
// arrives at its end, a trace at the begin of its first packet, and quiet streams send promises. The host is that of
// the first trace. The session's name is that of the directory.
func FromDirectory(root string) (*Source, error) {
	d := directory{source: &Source{}, root: root}
	if err := d.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("CTF traces in %s: %w", root, err), d.source.Close())
	}
	return d.source, nil
}

// directory makes a source from a directory.
type directory struct {
	source  *Source
	root    string
	streams uint64 // number of IDs in use
	// begin and end are the first and the last time in all traces, in nanoseconds since the epoch.
	begin, end int64
	known      bool
	traces     []*traceDir
}

// traceDir is one trace of the directory.
type traceDir struct {
	*ctfdir.Dir
	id      uint64
	begin   int64 // of its first packet, if known
	known   bool
	streams []*streamFile
}

// streamFile is one stream of a trace.
type streamFile struct {
	lttnglive.RecordedStream
	clock *ctf.Clock
	// times are the ends of the packets of the steps.
	times []int64
}

func (d *directory) open() error {
	fsys := os.DirFS(d.root)
	dirs, err := ctfdir.Find(fsys, ".")
	if err != nil {
		return err
	}
	if len(dirs) == 0 {
		return errors.New("expected a file metadata, found none")
	}
	for i, name := range dirs {
		opened, err := ctfdir.Open(fsys, name)
		if err != nil {
			return err
		}
		trace := &traceDir{Dir: opened, id: uint64(i)}
		if err := d.read(trace); err != nil {
			return err
		}
		d.traces = append(d.traces, trace)
	}
	if !d.known {
		return errors.New("expected packets with times, found none")
	}
	d.record()
	return nil
}

// read finds the packets of a trace.
func (d *directory) read(t *traceDir) error {
	for _, name := range t.Streams {
		s, err := d.readStream(t, name)
		if err != nil {
			return err
		}
		if len(s.Steps) > 0 { // the class of other streams is unknown
			t.streams = append(t.streams, s)
			d.source.Streams++
		}
	}
	return nil
}

func (d *directory) readStream(t *traceDir, name string) (*streamFile, error) {
	file, err := os.Open(filepath.Join(d.root, filepath.FromSlash(t.Name), name))
	if err != nil {
		return nil, err
	}
	d.source.files = append(d.source.files, file)
	d.streams++
	s := &streamFile{RecordedStream: lttnglive.RecordedStream{
		Stream:  lttnglive.Stream{ID: d.streams, TraceID: t.id, Path: t.Name, Channel: name},
		Packets: file,
	}}
	packets, err := t.Stream(name)
	if err != nil {
		return nil, err
	}
	for {
		_, err := packets.Next()
		if errors.Is(err, io.EOF) {
			return s, packets.Close()
		}
		if err == nil {
			err = d.addPacket(t, s, packets)
		}
		if err != nil {
			return nil, errors.Join(err, packets.Close())
		}
	}
}

// addPacket adds a step for the open packet.
func (d *directory) addPacket(t *traceDir, s *streamFile, packets *ctfdir.Stream) error {
	p := packets.Reader.Packet
	if s.clock = p.Class.Clock; s.clock == nil || !p.Has(metadata.RoleClock) || !p.Has(metadata.RolePacketEnd) {
		return fmt.Errorf("%s: packet at byte %d: expected one with the times of its begin and end, got none", path.Join(t.Name, s.Channel), packets.Offset)
	}
	index := lttnglive.Index{
		Offset:          uint64(packets.Offset),
		PacketSize:      p.Size,
		ContentSize:     p.Content,
		TimestampBegin:  p.Begin,
		TimestampEnd:    p.End,
		EventsDiscarded: p.Discarded,
		StreamClass:     p.Class.ID,
		Status:          lttnglive.IndexOK,
	}
	events, err := count(packets.Reader)
	if err != nil {
		return fmt.Errorf("%s: packet at byte %d: %w", path.Join(t.Name, s.Channel), packets.Offset, err)
	}
	d.source.countPacket(s.ID, index, events)
	begin, end := s.clock.UnixNano(p.Begin), s.clock.UnixNano(p.End)
	if n := len(s.times); n > 0 {
		end = max(end, s.times[n-1]) // the times of steps never decrease
	}
	s.Steps = append(s.Steps, lttnglive.Step{Index: index})
	s.times = append(s.times, end)
	if !t.known || begin < t.begin {
		t.begin, t.known = begin, true
	}
	if !d.known {
		d.begin, d.end, d.known = begin, end, true
	}
	d.begin, d.end = min(d.begin, begin), max(d.end, end)
	return nil
}

// record makes the recording.
func (d *directory) record() {
	end := d.since(d.end) + liveTimer
	r := &lttnglive.Recording{
		Session: lttnglive.Session{ID: 1, LiveTimer: liveTimer, Host: "localhost", Name: sessionName(d.root)},
		End:     end,
	}
	if host := d.traces[0].Trace.Env("hostname"); host != "" {
		r.Session.Host = host
	}
	for _, t := range d.traces {
		r.Streams = append(r.Streams, d.recordTrace(t, end)...)
	}
	slices.SortStableFunc(r.Streams, func(a, b lttnglive.RecordedStream) int { return cmp.Compare(a.At, b.At) })
	d.source.Recordings = []*lttnglive.Recording{r}
}

// recordTrace returns the streams of a trace.
func (d *directory) recordTrace(t *traceDir, end time.Duration) []lttnglive.RecordedStream {
	at := time.Duration(0)
	if t.known {
		at = d.since(t.begin)
	}
	d.streams++
	streams := []lttnglive.RecordedStream{{
		Stream: lttnglive.Stream{ID: d.streams, TraceID: t.id, Metadata: true, Path: t.Name, Channel: "metadata"},
		At:     at, End: end,
		Pieces: []lttnglive.MetadataPiece{{At: at, Data: t.Metadata}},
	}}
	for _, s := range t.streams {
		s.At, s.End = at, end
		for i := range s.Steps {
			s.Steps[i].At = d.since(s.times[i])
		}
		s.AddPromises(liveTimer, func(at time.Duration) uint64 { return cycles(s.clock, d.begin+int64(at)) })
		streams = append(streams, s.RecordedStream)
	}
	return streams
}

// since returns the time of the recording for a time of the trace.
func (d *directory) since(nanoseconds int64) time.Duration {
	return time.Duration(max(0, nanoseconds-d.begin))
}

// cycles returns the greatest value of a clock whose time is not after a time in nanoseconds since the epoch, or 0 if
// there is none.
func cycles(c *ctf.Clock, nanoseconds int64) uint64 {
	zero := c.UnixNano(0)
	if nanoseconds <= zero {
		return 0
	}
	high, low := bits.Mul64(uint64(nanoseconds-zero), c.Class.Frequency)
	if high >= uint64(time.Second) {
		return 0 // the promise would exceed all values
	}
	value, _ := bits.Div64(high, low, uint64(time.Second))
	return value
}

// sessionName returns the name of a directory.
func sessionName(root string) string {
	if absolute, err := filepath.Abs(root); err == nil {
		root = absolute
	}
	return filepath.Base(root)
}
