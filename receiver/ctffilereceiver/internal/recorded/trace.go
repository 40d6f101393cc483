// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
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
	// Damaged is called with each packet, or rest of a file, that cannot be read.
	Damaged func(error)
}

// Trace is a recorded trace. The goroutine that finds directories and that of its session share it.
type Trace struct {
	Identity
	settings *Settings

	// read is the number of bytes of packets that the session has read or skipped.
	read atomic.Int64

	mu sync.Mutex
	// sizes are the bytes of packets in its directories at the last search. ended are those that the last session has
	// read, or nil.
	dirs         []string
	sizes, ended map[string]int64
	// place returns an error with the file of a packet of the current connection. Its goroutine uses it.
	place func(stream string, offset uint64, err error) error
}

// NewTrace returns the trace of a directory.
func NewTrace(settings *Settings, identity Identity, dir string) *Trace {
	return &Trace{Identity: identity, settings: settings, dirs: []string{dir}, sizes: map[string]int64{}}
}

// Dir returns its first directory, which names the trace.
func (t *Trace) Dir() string { return t.directories()[0] }

func (t *Trace) directories() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.dirs)
}

// Join adds a directory, if it belongs to the trace. Its identity has the same key.
func (t *Trace) Join(dir string) (bool, error) {
	for _, other := range t.directories() {
		same, err := sameTrace(other, dir, t.settings.MaxMetadataBytes)
		if err != nil {
			continue // removed, or a rotation has moved it
		}
		if !same {
			return false, nil
		}
		break
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirs = append(t.dirs, dir)
	return true, nil
}

// forget removes a directory that does not exist any more, unless it is the only one.
func (t *Trace) forget(dir string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sizes, dir)
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
	size := int64(0)
	for i := range files {
		size += files[i].size
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sizes[dir] = size
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

// HasMore reports whether a directory is larger than what the last session has read, or new.
func (t *Trace) HasMore() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for dir, size := range t.sizes {
		if ended, ok := t.ended[dir]; !ok || size > ended {
			return true
		}
	}
	return false
}

// setEnded notes the bytes that a session has read, by file.
func (t *Trace) setEnded(files map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = maps.Clone(t.sizes)
	clear(t.ended)
	for name, size := range files {
		t.ended[filepath.Dir(name)] += size
	}
	for _, dir := range t.dirs {
		t.ended[dir] += 0 // a directory without packets
	}
}

// Damaged reports a packet of a stream that the session cannot read. The session's goroutine calls it.
func (t *Trace) Damaged(stream string, offset uint64, err error) {
	t.settings.Damaged(t.place(stream, offset, err))
}
