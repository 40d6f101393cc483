// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/session"
)

// Connection has the metadata and the packets of a trace, for one attachment of its session. One goroutine uses it.
type Connection struct {
	trace    *Trace
	settings *Settings
	room     func(bytes int) error

	// served is the number of bytes of metadata that were sent, and digest their hash. metadata are the sizes of the
	// files that were read.
	served   int
	digest   hash.Hash
	metadata map[string]int64
	// ctf is nil until the session has parsed the metadata.
	ctf  *ctf.Trace
	head *ctf.Reader
	// buffer holds the begin of a packet.
	buffer []byte

	// files are all files that were found, and their sizes. unbound are those whose stream is not known yet.
	files   map[string]int64
	unbound []*file
	streams map[uint64]*stream
	byKey   map[string]*stream
	// announced is set after the first announcement.
	announced bool
	// grown is when a file grew last, or was found. ended is set if none grew for so long that the trace has ended.
	grown time.Time
	ended bool
}

// IDs of the trace and its metadata in the session.
const traceID, metadataID = 1, 1

// Attach opens a connection.
func (t *Trace) Attach(_ context.Context, room func(bytes int) error, _ bool) (session.Connection, []lttnglive.Stream, error) {
	c := &Connection{
		trace: t, settings: t.settings, room: room, digest: sha256.New(), metadata: map[string]int64{},
		files: map[string]int64{}, streams: map[uint64]*stream{}, byKey: map[string]*stream{},
	}
	t.read.Store(0)
	t.conn = c
	return c, []lttnglive.Stream{{ID: metadataID, TraceID: traceID, Metadata: true, Path: t.Dir(), Channel: metadataFile}}, nil
}

// Fields returns the directory.
func (c *Connection) Fields() []zap.Field {
	return []zap.Field{zap.Strings("directories", c.trace.directories()), zap.String("key", c.trace.Key)}
}

// Detach does nothing: files have no viewers.
func (*Connection) Detach(context.Context) error { return nil }

// Close closes all files.
func (c *Connection) Close() error {
	for _, s := range c.streams {
		for _, f := range s.files {
			f.close()
		}
	}
	for _, f := range c.unbound {
		f.close()
	}
	return nil
}

// Metadata returns metadata that was not sent yet.
func (c *Connection) Metadata(context.Context, uint64, []byte) (lttnglive.MetadataReply, error) {
	for _, dir := range c.trace.directories() {
		text, err := c.newMetadata(dir)
		if err != nil {
			return lttnglive.MetadataReply{}, err
		}
		if len(text) > 0 {
			return lttnglive.MetadataReply{Status: lttnglive.MetadataOK, Data: text}, nil
		}
	}
	return lttnglive.MetadataReply{Status: lttnglive.MetadataNone}, nil
}

// newMetadata returns the text in a directory after the text that was sent.
func (c *Connection) newMetadata(dir string) ([]byte, error) {
	if !c.hasNewMetadata(dir) {
		return nil, nil
	}
	if err := c.room(2 * int(min(c.metadata[dir], int64(c.settings.MaxMetadataBytes)))); err != nil {
		return nil, err
	}
	text, err := readMetadata(dir, c.settings.MaxMetadataBytes)
	if err != nil {
		return nil, session.BadData(session.BadMetadata, err)
	}
	if len(text) <= c.served {
		return nil, nil
	}
	if before := sha256.Sum256(text[:c.served]); !slices.Equal(before[:], c.digest.Sum(nil)) {
		return nil, session.BadData(session.BadMetadata, fmt.Errorf("%s: expected the same first %d bytes of metadata as before, got other bytes",
			filepath.Join(dir, metadataFile), c.served))
	}
	text = text[c.served:]
	c.served += len(text)
	c.digest.Write(text)
	return text, nil
}

// hasNewMetadata reports whether the metadata in a directory is longer than when it was read.
func (c *Connection) hasNewMetadata(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, metadataFile))
	if err != nil || !info.Mode().IsRegular() || info.Size() <= c.metadata[dir] {
		return false // a rotation has moved it: other files follow
	}
	c.metadata[dir] = info.Size()
	return true
}

// Identified passes the parsed metadata.
func (c *Connection) Identified(t *ctf.Trace) { c.ctf, c.head = t, ctf.NewReader(t) }

// Resume announces the position of a stream.
func (c *Connection) Resume(id uint64, at merge.Position) { c.streams[id].resume(at) }

// NewStreams returns the streams of files that were found since the last call:
//
//  1. Find new files in all directories.
//  2. Read the begin of each file without stream: it names the stream.
//  3. Announce new streams together, because the order of events needs all of them. While files grow, wait for those
//     that have no packet yet.
//
// After the end of all streams it reports the end of the session.
func (c *Connection) NewStreams(context.Context) (lttnglive.NewStreamsReply, error) {
	none := lttnglive.NewStreamsReply{Status: lttnglive.NewStreamsOK}
	if err := c.findFiles(); err != nil {
		return none, err
	}
	if c.ctf == nil {
		if c.settings.Once || c.isOver() {
			return none, session.BadData(session.BadMetadata, fmt.Errorf("%s: %w", filepath.Join(c.trace.Dir(), metadataFile), errNoTrace))
		}
		return none, nil
	}
	over := c.settings.Once || c.isOver()
	if err := c.bind(over); err != nil {
		return none, err
	}
	if !c.announced && len(c.unbound) > 0 && !over && !c.isQuiet() {
		return none, nil
	}
	c.announced = true
	if streams := c.unannounced(); len(streams) > 0 {
		return lttnglive.NewStreamsReply{Status: lttnglive.NewStreamsOK, Streams: streams}, nil
	}
	for _, s := range c.streams {
		if !s.ended {
			return none, nil
		}
	}
	if !over {
		return none, nil
	}
	c.trace.setEnded(c.files)
	return lttnglive.NewStreamsReply{Status: lttnglive.NewStreamsHangUp}, nil
}

// findFiles finds new files.
func (c *Connection) findFiles() error {
	if c.settings.Once && c.announced {
		return nil
	}
	for _, dir := range c.trace.directories() {
		files, err := packetFiles(dir, c.settings.MaxStreams)
		if errors.Is(err, os.ErrNotExist) {
			c.forget(dir)
			continue
		}
		if err != nil {
			return session.BadData(session.BadProtocol, err)
		}
		for i := range files {
			f := &files[i]
			if known, ok := c.files[f.path]; ok {
				if f.size > known {
					c.noteGrowth(c.settings.Now())
					c.files[f.path] = f.size
				}
				continue
			}
			if c.files[f.path] = f.size; len(c.files) > maxEntries {
				return session.BadData(session.BadProtocol, fmt.Errorf("expected at most %d files of a trace, got more", maxEntries))
			}
			c.noteGrowth(f.modified)
			c.unbound = append(c.unbound, f)
		}
	}
	return nil
}

// forget forgets the files of a directory that was removed, or that a rotation has moved. Open files are still read.
func (c *Connection) forget(dir string) {
	c.trace.forget(dir)
	delete(c.metadata, dir)
	for name := range c.files {
		if filepath.Dir(name) == dir {
			delete(c.files, name)
		}
	}
}

// noteGrowth notes when a file grew.
func (c *Connection) noteGrowth(at time.Time) {
	if now := c.settings.Now(); at.After(now) {
		at = now // a machine with another clock
	}
	if at.After(c.grown) {
		c.grown = at
	}
}

// isQuiet reports whether no file grew for some time, and isOver whether the trace has ended.
func (c *Connection) isQuiet() bool {
	return c.settings.Now().Sub(c.grown) >= c.settings.MaxDelay
}

func (c *Connection) isOver() bool {
	c.ended = c.ended || c.settings.Now().Sub(c.grown) >= c.settings.EndAfter
	return c.ended
}

// bind finds the streams of files. all is set if no file grows any more.
func (c *Connection) bind(all bool) error {
	waiting := c.unbound
	c.unbound = nil
	var bound []*file
	for _, f := range waiting {
		key, err := c.keyOf(f, all)
		f.close()
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue // removed: its packets are in another file, or lost
		case err != nil:
			return err
		case key == "":
			if !all {
				c.unbound = append(c.unbound, f)
			}
			continue
		}
		f.key = key
		bound = append(bound, f)
	}
	slices.SortStableFunc(bound, func(a, b *file) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.sequence, b.sequence))
	})
	for _, f := range bound {
		s := c.byKey[f.key]
		if s == nil {
			s = &stream{key: f.key, conn: c, name: f.path}
			c.byKey[f.key] = s
		}
		s.files = append(s.files, f)
	}
	return nil
}

// keyOf returns the key of a file's stream, or "" if the file has no packet yet.
func (c *Connection) keyOf(f *file, all bool) (string, error) {
	if err := f.open(); err != nil {
		return "", err
	}
	if f.size == 0 {
		return "", nil
	}
	p, _, err := c.readHead(f, 0)
	if errors.Is(err, errShort) && !all {
		return "", nil
	}
	if key, ok := streamKey(&p); err == nil && ok {
		f.sequence = p.Sequence
		return key, nil
	}
	return f.path, nil
}

// unannounced returns the streams that were not announced yet, in the order of their files.
func (c *Connection) unannounced() []lttnglive.Stream {
	var fresh []*stream
	for _, s := range c.byKey {
		if s.id == 0 {
			fresh = append(fresh, s)
		}
	}
	slices.SortFunc(fresh, func(a, b *stream) int { return strings.Compare(a.name, b.name) })
	var streams []lttnglive.Stream
	for _, s := range fresh {
		s.id = metadataID + 1 + uint64(len(c.streams))
		c.streams[s.id] = s
		streams = append(streams, lttnglive.Stream{ID: s.id, TraceID: traceID, Channel: s.key})
	}
	return streams
}

// NextIndex returns the index of the next packet of a stream.
func (c *Connection) NextIndex(ctx context.Context, id uint64) (lttnglive.Index, error) {
	s := c.streams[id]
	index, err := s.next(ctx)
	if c.settings.Once || err != nil || index.Status != lttnglive.IndexOK {
		return index, err
	}
	dir := filepath.Dir(s.files[0].path)
	if info, err := os.Lstat(filepath.Join(dir, metadataFile)); err == nil && info.Size() > c.metadata[dir] {
		index.Flags = lttnglive.FlagNewMetadata // LTTng writes it before the packets that need it
	}
	return index, nil
}

// Packet returns the content of the packet of the last index.
func (c *Connection) Packet(_ context.Context, id, offset, length uint64, dst []byte) (lttnglive.PacketReply, error) {
	data, err := c.streams[id].read(offset, length, dst)
	if err != nil {
		c.settings.Damaged(err)
		return lttnglive.PacketReply{}, &lttnglive.StatusError{Status: lttnglive.PacketError}
	}
	return lttnglive.PacketReply{Status: lttnglive.PacketOK, Data: data}, nil
}

// damage returns the error of a packet with its place. The key is that of the session.
func (c *Connection) damage(key string, offset uint64, err error) error {
	if s := c.byKey[strings.TrimPrefix(key, "/")]; s != nil {
		return s.at(offset, err)
	}
	return err
}

// promise returns a time after the latest packet of all streams with a clock.
func (c *Connection) promise(of *ctf.Clock) (end uint64) {
	for _, s := range c.streams {
		if s.class != nil && s.class.Clock == of {
			end = max(end, s.end)
		}
	}
	return end + 1
}
