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
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
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

	// files are all files that were found, by path. unbound are those whose stream is not known yet.
	files   map[string]*file
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
		files: map[string]*file{}, streams: map[uint64]*stream{}, byKey: map[string]*stream{},
	}
	t.read.Store(0)
	t.place = c.damage
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
func (c *Connection) Metadata(ctx context.Context, _ uint64, _ []byte) (lttnglive.MetadataReply, error) {
	for _, dir := range c.trace.directories() {
		text, err := c.newMetadata(ctx, dir)
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
func (c *Connection) newMetadata(ctx context.Context, dir string) ([]byte, error) {
	if !c.hasNewMetadata(dir) {
		return nil, nil
	}
	if err := c.room(2 * int(min(c.metadata[dir], int64(c.settings.MaxMetadataBytes)))); err != nil {
		return nil, err
	}
	text, err := readMetadata(ctx, dir, c.settings.MaxMetadataBytes)
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

// Resume announces the position of a stream. It returns false if that is a position in another recording.
func (c *Connection) Resume(id uint64, at merge.Position) bool { return c.streams[id].resume(at) }

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

// findFiles finds new files, and those that have replaced others. After the end it finds none: they are for the next
// session.
func (c *Connection) findFiles() error {
	if c.settings.Once && c.announced || c.ended {
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
			if known := c.files[f.path]; known != nil {
				if !c.isReplaced(known, f) {
					continue
				}
				c.giveUp(known, f)
			}
			if c.files[f.path] = f; len(c.files) > maxEntries {
				return session.BadData(session.BadProtocol, fmt.Errorf("expected at most %d files of a trace, got more", maxEntries))
			}
			c.noteGrowth(f.info.ModTime())
			c.unbound = append(c.unbound, f)
		}
	}
	return nil
}

// isReplaced reports whether a known file has another content now. Otherwise it notes the size of the file.
func (c *Connection) isReplaced(known, now *file) bool {
	if known.isReplaced(now) {
		return true
	}
	grows := now.size > known.size
	if grows {
		c.noteGrowth(c.settings.Now())
	}
	isWritten := grows || !now.info.ModTime().Equal(known.info.ModTime())
	known.size, known.info = now.size, now.info
	return isWritten && c.wasCut(known)
}

// wasCut reports whether the first packet of a file is another one than before: the content was cut, or a new file has
// the number of the old one. File systems use the number of a removed file again, unless the file is open.
func (c *Connection) wasCut(f *file) bool {
	if f.wasCut || !f.hasHead {
		return f.wasCut
	}
	if f.opened == nil {
		if f.open() != nil {
			return false // removed in the meantime
		}
		defer f.close()
	}
	p, _, err := c.readHead(f, 0)
	f.wasCut = err != nil || p.Begin != f.begin || f.isNumbered() && p.Sequence != f.sequence
	return f.wasCut
}

// giveUp ends the reading of a file that was replaced. If it is open, and its content was not cut, the rest is read.
func (c *Connection) giveUp(f, by *file) {
	if f.opened == nil || os.SameFile(f.info, by.info) {
		f.unreadable = true
		c.noteMove()
	}
	c.unbound = slices.DeleteFunc(c.unbound, func(u *file) bool { return u == f })
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

// noteMove notes that the packets of a file may be in another place, where a later search finds them. Without this, a
// trace that was not read for max_delay would be quiet until then, and other streams would overtake this one.
func (c *Connection) noteMove() { c.noteGrowth(c.settings.Now()) }

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
		s.insert(f)
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
	if err != nil {
		return f.path, nil
	}
	f.hasHead, f.begin = true, p.Begin
	if content := (p.Content + 7) / 8; content > 0 && content <= uint64(f.size) {
		f.hash = merge.HashOf(c.buffer[:min(content, merge.HashedBytes)])
	}
	if key, ok := streamKey(&p); ok {
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
		c.settings.Skip(DamagedPacket, err)
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

// stream reads the packets of one stream, from its files in their order.
type stream struct {
	conn *Connection
	id   uint64
	// key identifies the stream, in each reading. name is the path of its first file.
	key, name string
	// files are those that were not read to their end. The first is the current one.
	files []*file
	// base is the place of the current file in the stream, offset that of the next packet in the file. past are the
	// last finished files, for messages.
	base   uint64
	offset int64
	past   []finished

	// skipping is set until the first packet of a file that is not before from: a sequence number, or the place of a
	// packet without one.
	skipping bool
	from     uint64
	// class and end describe the last packet. size is its size, which is that of all packets of LTTng's streams.
	class *ctf.StreamClass
	end   uint64
	size  int64
	ended bool

	// begun is set after the first packet of all sessions, and first is its sequence number. older counts the packets
	// before it in the current file.
	begun bool
	first uint64
	older int
}

// finished is a file that was read to its end.
type finished struct {
	base uint64
	path string
}

// maxFinished bounds the finished files that a stream remembers.
const maxFinished = 16

const (
	// headBytes are read to find the header and the context of a packet, at most maxHeadBytes.
	headBytes    = 4 << 10
	maxHeadBytes = 1 << 20
	// maxSteps bounds the steps of a packet's size in which the next one is sought after damage.
	maxSteps = 64
)

// errShort: a file ends inside the header or the context of a packet.
var errShort = errors.New("the file ends inside the header of a packet")

// streamKey returns the key of the stream of a packet. false: its file is a stream of its own.
func streamKey(p *ctf.Packet) (string, bool) {
	if !p.Has(metadata.RoleSequence) || !p.Has(metadata.RoleStreamInstance) {
		return "", false
	}
	return fmt.Sprintf("%d.%d", p.Class.ID, p.Instance), true
}

// readHead reads header and context of the packet at an offset of a file, and returns its size in bytes; 0: it has no
// size.
func (c *Connection) readHead(f *file, offset int64) (ctf.Packet, int, error) {
	for want := headBytes; ; want *= 2 {
		if cap(c.buffer) < want {
			c.buffer = make([]byte, want)
		}
		n, err := f.opened.ReadAt(c.buffer[:want], offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return ctf.Packet{}, 0, err
		}
		p, size, err := c.head.Head(c.buffer[:n])
		switch {
		case !errors.Is(err, io.ErrUnexpectedEOF):
			return p, size, err
		case n < want:
			return p, 0, errShort
		case want >= maxHeadBytes:
			return p, 0, fmt.Errorf("expected a header and a context of at most %d bytes, got more", maxHeadBytes)
		}
	}
}

// resume sets the position: earlier packets were read. It returns false if the first packet shows that another recording
// was read.
func (s *stream) resume(at merge.Position) bool {
	for _, f := range s.files {
		if at.First.IsOther(f.first()) {
			return false
		}
	}
	if at.Known {
		s.skipping, s.from, s.begun, s.first = true, at.Next, true, at.First.Sequence
	}
	return true
}

// insert adds a file before those with later packets, if these are not read yet.
func (s *stream) insert(f *file) {
	i := len(s.files)
	for i > 0 && s.files[i-1].opened == nil && s.files[i-1].sequence > f.sequence {
		i--
	}
	s.files = slices.Insert(s.files, i, f)
}

// next returns the index of the next packet. In a loop:
//
//  1. At the end of a file go on with the next one. At the end of the last one the stream waits, or has ended.
//  2. Read header and context of the packet. If they are damaged, seek the next packet.
//  3. A packet that is not whole yet waits. If its file does not grow, it is damaged.
//  4. Leave out a packet that was read before.
func (s *stream) next(ctx context.Context) (lttnglive.Index, error) {
	for ctx.Err() == nil {
		if len(s.files) == 0 {
			return s.wait(), nil
		}
		f := s.files[0]
		if err := s.open(f); errors.Is(err, errMoved) {
			s.conn.noteMove()
			s.finishFile()
			continue
		} else if err != nil {
			return s.skipFile(err)
		}
		atEnd, err := s.isAtEnd(f)
		switch {
		case err != nil:
			return s.skipFile(err)
		case atEnd && s.older > 0:
			return s.reportOlder(f)
		case atEnd && len(s.files) > 1:
			s.finishFile()
			continue
		case atEnd:
			return s.wait(), nil
		}
		p, size, err := s.conn.readHead(f, s.offset)
		if err == nil && size == 0 {
			size, err = s.rest(f, &p)
		}
		switch {
		case errors.Is(err, errShort):
			return s.waitForMore(f, err)
		case err != nil:
			return s.seek(f, err)
		case int64(size) > f.size-s.offset:
			return s.waitForMore(f, fmt.Errorf("expected a packet of %d bytes, got %d: %w", size, f.size-s.offset, io.ErrUnexpectedEOF))
		case s.wasRead(&p):
			s.advance(int64(size))
			continue
		case p.Content > uint64(size)*8:
			return s.skip(int64(size), fmt.Errorf("expected a content of at most the packet's %d bits, got %d", size*8, p.Content))
		case p.Content/8 > uint64(s.conn.settings.MaxPacketBytes):
			return s.skip(int64(size), fmt.Errorf("expected a content of at most %d bytes (limits.max_packet_bytes), got %d", s.conn.settings.MaxPacketBytes, p.Content/8))
		}
		return s.index(&p, int64(size)), nil
	}
	return lttnglive.Index{}, context.Cause(ctx)
}

// errMoved: a rotation has moved a file, and its packets are in another one.
var errMoved = errors.New("the file was moved")

// open opens a file. While files grow, it also checks that the file still has the packets that were found in it.
func (s *stream) open(f *file) error {
	if f.opened != nil {
		return nil
	}
	err := f.open()
	switch {
	case s.conn.settings.Once:
	case errors.Is(err, os.ErrNotExist) && f.isNumbered():
		return errMoved // if it was removed, the sequence numbers show that packets are missing
	case err == nil && s.conn.wasCut(f):
		f.unreadable = true
		s.conn.noteMove()
	}
	return err
}

// index returns the index of a packet, and goes on behind it.
func (s *stream) index(p *ctf.Packet, size int64) lttnglive.Index {
	i := lttnglive.Index{
		Offset: s.place(), PacketSize: uint64(size) * 8, ContentSize: p.Content,
		TimestampBegin: p.Begin, TimestampEnd: p.End, EventsDiscarded: p.Discarded, StreamClass: p.Class.ID, Status: lttnglive.IndexOK,
	}
	s.class, s.end, s.size = p.Class, max(s.end, p.Begin, p.End), size
	if p.Has(metadata.RoleSequence) {
		if s.from = p.Sequence + 1; !s.begun {
			s.begun, s.first = true, p.Sequence
		}
	} else {
		s.from = i.Offset + 1
	}
	s.skipping = false
	s.advance(size)
	return i
}

// place returns the place of the next packet in the stream.
func (s *stream) place() uint64 { return s.base + uint64(s.offset) }

func (s *stream) advance(size int64) {
	s.offset += size
	s.conn.trace.read.Add(size)
}

// isAtEnd reports whether all bytes of a file were read.
func (s *stream) isAtEnd(f *file) (bool, error) {
	if s.offset < f.size && !f.unreadable {
		return false, nil
	}
	grown, err := f.grow()
	if err != nil {
		return false, err
	}
	if grown {
		s.conn.noteGrowth(s.conn.settings.Now())
		f.unreadable = f.unreadable || s.conn.wasCut(f)
	}
	return s.offset >= f.size || f.unreadable, nil
}

// finishFile goes on with the next file.
func (s *stream) finishFile() {
	f := s.files[0]
	f.close()
	if s.past = append(s.past, finished{s.base, f.path}); len(s.past) > maxFinished {
		s.past = s.past[1:]
	}
	s.base += uint64(max(f.size, s.offset))
	s.files, s.offset = s.files[1:], 0
	s.skipping = true
}

// wasRead reports whether a packet was read before: by an earlier session, or from another file. It counts packets
// that are older than all of these.
func (s *stream) wasRead(p *ctf.Packet) bool {
	if !s.skipping {
		return false
	}
	if p.Has(metadata.RoleSequence) {
		if p.Sequence < s.first {
			s.older++
		}
		return p.Sequence < s.from
	}
	return s.place() < s.from
}

// rest returns the size of a packet without one: the rest of the file, when that no longer grows.
func (s *stream) rest(f *file, p *ctf.Packet) (int, error) {
	size := f.size - s.offset
	if size > ctf.MaxPacketBytes {
		return 0, fmt.Errorf("expected a packet of at most %d bytes, got %d", ctf.MaxPacketBytes, size)
	}
	if !s.isFinal() {
		return 0, errShort
	}
	p.Size, p.Content = uint64(size)*8, uint64(size)*8
	return int(size), nil
}

// isFinal reports whether the current file no longer grows.
func (s *stream) isFinal() bool {
	return len(s.files) > 1 || s.conn.settings.Once || s.conn.isOver()
}

// wait returns the index of a stream without packets. It has ended, or has nothing older than the latest packet of all
// streams, or may have something.
func (s *stream) wait() lttnglive.Index {
	switch {
	case s.conn.settings.Once || s.conn.isOver():
		s.ended = true
		return lttnglive.Index{Status: lttnglive.IndexHangUp}
	case s.conn.isQuiet() && s.class != nil && s.class.Clock != nil:
		return lttnglive.Index{Status: lttnglive.IndexInactive, StreamClass: s.class.ID, TimestampEnd: s.conn.promise(s.class.Clock)}
	}
	return lttnglive.Index{Status: lttnglive.IndexRetry}
}

// waitForMore waits until a file has the rest of a packet.
func (s *stream) waitForMore(f *file, err error) (lttnglive.Index, error) {
	if grown, failed := f.grow(); failed != nil {
		return s.skipFile(failed)
	} else if grown {
		s.conn.noteGrowth(s.conn.settings.Now())
		f.unreadable = f.unreadable || s.conn.wasCut(f)
		return lttnglive.Index{Status: lttnglive.IndexRetry}, nil
	}
	if !s.isFinal() {
		return s.wait(), nil
	}
	f.unreadable = true
	return s.report(DamagedPacket, err)
}

// seek seeks the packet after damage, at distances of the size of the last packet. If it finds none, the rest of the
// file is lost.
func (s *stream) seek(f *file, err error) (lttnglive.Index, error) {
	if s.size > 0 {
		for step := int64(1); step <= maxSteps && s.offset+step*s.size < f.size; step++ {
			if _, size, e := s.conn.readHead(f, s.offset+step*s.size); e == nil && size > 0 {
				return s.skip(step*s.size, err)
			}
		}
	}
	f.unreadable = true
	return s.report(DamagedRest, err)
}

// skip goes on behind a damaged packet.
func (s *stream) skip(size int64, err error) (lttnglive.Index, error) {
	i, err := s.report(DamagedPacket, err)
	s.advance(size)
	return i, err
}

// skipFile reports a file that cannot be read, and goes on behind it.
func (s *stream) skipFile(err error) (lttnglive.Index, error) {
	i, err := s.report(UnreadableFile, err)
	s.finishFile()
	return i, err
}

// report reports damage at the place of the next packet.
func (s *stream) report(what Skipped, err error) (lttnglive.Index, error) {
	err = s.at(s.place(), err)
	s.conn.settings.Skip(what, err)
	return lttnglive.Index{}, &session.LossError{Err: err}
}

// reportOlder reports the packets of a file that are older than the first one that was read. It reports a file once.
func (s *stream) reportOlder(f *file) (lttnglive.Index, error) {
	err := fmt.Errorf("%s: expected packets from sequence number %d on, got %d earlier ones: directories must appear in the order of their packets", f.path, s.first, s.older)
	loss := &session.LossError{Err: err, Older: int64(s.older)}
	s.older = 0
	if s.conn.trace.reported[f.path] {
		return lttnglive.Index{Status: lttnglive.IndexRetry}, nil
	}
	s.conn.trace.reported[f.path] = true
	s.conn.settings.Skip(OlderPackets, err)
	return lttnglive.Index{}, loss
}

// at returns an error with the file and the offset of a place.
func (s *stream) at(place uint64, err error) error {
	base, path := s.base, s.name
	if len(s.files) > 0 {
		path = s.files[0].path
	}
	for i := len(s.past) - 1; i >= 0 && place < base; i-- {
		base, path = s.past[i].base, s.past[i].path
	}
	return fmt.Errorf("%s: packet at byte %d: %w", path, place-min(base, place), err)
}

// read reads the content of the packet at a place.
func (s *stream) read(place, length uint64, dst []byte) ([]byte, error) {
	if uint64(cap(dst)) < length {
		dst = make([]byte, length)
	}
	dst = dst[:length]
	if len(s.files) == 0 || place < s.base {
		return nil, s.at(place, errors.New("expected the packet of the last index"))
	}
	if _, err := s.files[0].opened.ReadAt(dst, int64(place-s.base)); err != nil {
		return nil, s.at(place, err)
	}
	return dst, nil
}
