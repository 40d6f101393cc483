// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Settings are common to all traces of a receiver.
type Settings struct {
	// Once is set if no file grows: a trace ends with its last byte.
	Once bool
	// MaxDelay is the time without growth after which streams no longer wait for others. EndAfter is the time without
	// growth after which a trace has ended.
	MaxDelay, EndAfter time.Duration
	// MaxPacketBytes bounds the content of a packet, MaxMetadataBytes the metadata of a trace, and MaxStreams the files
	// of a trace.
	MaxPacketBytes, MaxMetadataBytes, MaxStreams int
	Now                                          func() time.Time
	// Skip is called with all data that is not read.
	Skip func(Skipped, error)
}

// Skipped is a kind of data that is not read.
type Skipped uint8

const (
	DamagedPacket Skipped = iota
	// DamagedRest is the rest of a file after a packet whose size is not known.
	DamagedRest
	UnreadableFile
	// OlderPackets are in a file that appeared after later packets had been read.
	OlderPackets
)

// Trace is a recorded trace. The goroutine that finds directories and that of its session share it.
type Trace struct {
	Identity
	settings *Settings

	// known is metadata of the trace. The goroutine that finds directories uses it.
	known knownMetadata
	// read is the number of bytes of packets that the session has read or skipped.
	read atomic.Int64

	mu sync.Mutex
	// dirs are its directories, and sizes the bytes of packets in them at the last search.
	dirs  []string
	sizes map[string]int64
	// states are the sums of the states of files by directory, at the last search. ended are those that the last session
	// has read, or nil.
	states, ended map[string]uint64
	// reported are the files with older packets. The session uses it.
	reported map[string]bool
	// place returns an error with the file of a packet of the current connection. Its goroutine uses it. It is nil while
	// there is no session.
	place func(stream string, offset uint64, err error) error
}

// NewTrace returns the trace of a directory.
func NewTrace(settings *Settings, identity Identity, dir string) *Trace {
	return &Trace{Identity: identity, settings: settings, dirs: []string{dir}, sizes: map[string]int64{}, states: map[string]uint64{}, reported: map[string]bool{}}
}

// Dir returns its first directory, which names the trace.
func (t *Trace) Dir() string { return t.directories()[0] }

func (t *Trace) directories() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.dirs)
}

// Has reports whether a directory belongs to the trace. A session forgets a directory that does not exist.
func (t *Trace) Has(dir string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.dirs, dir)
}

// Join adds a directory, if it belongs to the trace: its metadata continues that of the other directories, or theirs
// continues its own. Files with other metadata, such as after lttng regenerate metadata, are another trace. The identity
// of the directory has the same position.
func (t *Trace) Join(ctx context.Context, dir string) (bool, error) {
	text, err := readMetadata(ctx, dir, t.settings.MaxMetadataBytes)
	if err != nil {
		return false, err
	}
	if len(text) < t.known.length || t.known.length == 0 {
		if !t.isLonger(ctx, text) {
			return false, nil
		}
	} else if !t.known.begins(text) {
		return false, nil
	}
	if len(text) >= t.known.length {
		t.known = newKnownMetadata(text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirs = append(t.dirs, dir)
	return true, nil
}

// isLonger reports whether the metadata in the first directory that can be read begins with a text, or continues it. If
// none can be read, it is true: rotations move directories.
func (t *Trace) isLonger(ctx context.Context, text []byte) bool {
	for _, dir := range t.directories() {
		other, err := readMetadata(ctx, dir, t.settings.MaxMetadataBytes)
		if err != nil {
			continue
		}
		if len(other) >= t.known.length {
			t.known = newKnownMetadata(other)
		}
		return bytes.HasPrefix(other, text) || bytes.HasPrefix(text, other)
	}
	return ctx.Err() == nil
}

// forget removes a directory that does not exist any more, unless it is the only one.
func (t *Trace) forget(dir string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sizes, dir)
	delete(t.states, dir)
	if len(t.dirs) > 1 {
		t.dirs = slices.DeleteFunc(t.dirs, func(d string) bool { return d == dir })
	}
}

// Measure adds up the sizes of the files in a directory.
func (t *Trace) Measure(dir string) error {
	files, err := packetFiles(dir, t.settings.MaxStreams)
	if err != nil {
		return err
	}
	size, state := int64(0), uint64(0)
	for i := range files {
		size += files[i].size
		state += files[i].state()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sizes[dir], t.states[dir] = size, state
	return nil
}

// Size returns the bytes of packets at the last search, and Read those that were read.
func (t *Trace) Size() (size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.sizes {
		size += n
	}
	return size
}

// Read returns the bytes of packets that were read.
func (t *Trace) Read() int64 { return min(t.read.Load(), t.Size()) }

// HasMore reports whether the last search found files that have changed since the last session has read them, or new ones.
func (t *Trace) HasMore() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for dir, state := range t.states {
		if ended, ok := t.ended[dir]; !ok || state != ended {
			return true
		}
	}
	return false
}

// setEnded notes the files that a session has read. The next search shows whether there is more: the last one may be from
// a time before the session has read them.
func (t *Trace) setEnded(files map[string]*file) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = map[string]uint64{}
	for name, f := range files {
		if !f.wasCut { // the next session reads its new content
			t.ended[filepath.Dir(name)] += f.state()
		}
	}
	for _, dir := range t.dirs {
		t.ended[dir] += 0 // a directory without packets
	}
	t.states = maps.Clone(t.ended)
}

// Release releases the last connection, which holds the memory of its session. The session's goroutine calls it at its
// end.
func (t *Trace) Release() { t.place = nil }

// Damaged reports a packet of a stream that the session cannot read. The session's goroutine calls it.
func (t *Trace) Damaged(stream string, offset uint64, err error) {
	t.settings.Skip(DamagedPacket, t.place(stream, offset, err))
}
