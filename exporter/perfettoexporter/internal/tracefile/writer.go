// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"bytes"
	"fmt"
	"math"

	"github.com/klauspost/compress/zlib"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// chunkBytes is the size of a chunk's events at which it is full.
	chunkBytes = 512 << 10
	// fullBytes is the size of a chunk's events and descriptors at which it is full. Only chunks of very many tracks, or of those
	// with long descriptions, reach it.
	fullBytes = 640 << 10
	// maxChunkBytes is the size of both at which no more is added to the last slice or log record. So a chunk takes less than a
	// mebibyte, even if nothing in it can be compressed.
	maxChunkBytes = 896 << 10
)

// Writer makes the records of a file. It is for one goroutine at a time.
type Writer struct {
	maxTracks, maxCounters int
	tracks                 tracks
	// chunk is the number of the current one. The first is 1.
	chunk uint32
	// overlapping counts the tracks for slices that do not fit into their thread's.
	overlapping int64
	// omitted counts parts of slices and log records that were left out.
	omitted int64

	// Of the current chunk: its items, whose numbers are their indexes, the tracks that have them, the messages of the items,
	// interned data and descriptors. Item 0 is none.
	items       []item
	used        []*track
	content     Content
	bodies      []byte
	interned    []byte
	descriptors []byte
	names       interned
	categories  interned
	keys        interned
	values      interned
	locations   locations
	// recent has the latest location of each name, because most names have only one.
	recent []locationID
	// name is the number of the last item's name.
	name uint64
	// lastSlice is the number of the latest slice.
	lastSlice uint32

	sorter     sorter
	packets    []byte
	compressed bytes.Buffer
	zlib       *zlib.Writer
	record     []byte
}

// NewWriter makes a writer for files with at most so many counters, and so many other tracks.
func NewWriter(maxTracks, maxCounters int) *Writer {
	compressor, _ := zlib.NewWriterLevel(nil, compressionLevel) // the level is valid
	strings := func(f protowire.Number, most int) interned {
		return interned{field: f, most: most, ids: map[string]uint64{}}
	}
	return &Writer{
		maxTracks:   maxTracks,
		maxCounters: maxCounters,
		tracks:      newTracks(),
		names:       strings(fieldEventNames, maxNameBytes),
		categories:  strings(fieldEventCategories, maxNameBytes),
		keys:        strings(fieldAnnotationNames, maxNameBytes),
		values:      strings(fieldAnnotationValues, maxValueBytes),
		locations:   locations{},
		items:       make([]item, 1),
		zlib:        compressor,
	}
}

// compressionLevel is the fastest one whose files are small enough.
const compressionLevel = 1

// Slice is the time and the identity of a slice, in Unix nanoseconds.
type Slice struct {
	Name         string
	Start, End   uint64
	Self, Parent Key
	// Trace makes slices without a thread that belong together stay together.
	Trace uint64
}

// Content is the number of things in a chunk.
type Content struct{ Slices, Values, LogRecords int }

// LatestTime is the latest time that readers accept.
const LatestTime = math.MaxInt64

// Begin adds a slice to the chunk: of a thread, or of a process without one. The methods that add fields then apply to
// it, until the next event. Slices of a thread arrive callees first: others get tracks beside the thread's.
func (w *Writer) Begin(p *Process, t *Thread, s Slice) {
	w.next()
	w.content.Slices++
	end := max(s.Start, s.End)
	on := w.trackOf(p, t, &interval{start: s.Start, end: end, self: s.Self, parent: s.Parent, chunk: w.chunk}, s.Trace)
	w.use(on)
	w.lastSlice = uint32(len(w.items))
	w.items = append(w.items, item{s.Start, end, uint32(len(w.bodies)), on.uuid, on.slices, w.lastSlice})
	on.slices = w.lastSlice
	on.events += 2
	w.appendHead(typeSliceBegin, s.Name)
}

// Instant adds an instant in the last slice. If its time is outside, it is an instant of the process. It returns false if the
// chunk has no room for it.
func (w *Writer) Instant(p *Process, name string, time uint64) bool {
	if !w.hasRoom() {
		return false
	}
	on, in := p.track, uint32(len(w.items))
	if last := &w.items[w.lastSlice]; w.lastSlice != 0 && last.start <= time && time <= last.end {
		on, in = w.tracks.all[last.track-1], w.lastSlice
	}
	w.addOther(on, time, in)
	w.appendHead(typeInstant, name)
	return true
}

// LogRecord adds an instant to the chunk: of a thread, or of a process without one.
func (w *Writer) LogRecord(p *Process, t *Thread, name string, time uint64) {
	w.next()
	w.content.LogRecords++
	on := p.track
	if t != nil {
		on = t.lanes[0]
	}
	w.addOther(on, time, uint32(len(w.items)))
	w.appendHead(typeInstant, name)
}

// Int adds a value of a counter to the chunk.
func (w *Writer) Int(c *Counter, time uint64, v int64) {
	w.value(c, time)
	w.bodies = appendUint(w.bodies, fieldCounterValue, uint64(v))
}

// Double adds a value of a counter to the chunk.
func (w *Writer) Double(c *Counter, time uint64, v float64) {
	w.value(c, time)
	w.bodies = appendDouble(w.bodies, fieldDoubleCounterValue, v)
}

func (w *Writer) value(c *Counter, time uint64) {
	w.next()
	w.content.Values++
	w.addOther(c.track, time, uint32(len(w.items)))
	w.bodies = appendUint(w.bodies, fieldType, typeCounter)
}

// next begins a chunk with its first item.
func (w *Writer) next() {
	if len(w.items) == 1 {
		w.chunk++
	}
}

// use lets the chunk have a track.
func (w *Writer) use(t *track) {
	w.describe(t)
	if t.used != w.chunk {
		t.used, t.slices, t.others, t.events = w.chunk, 0, 0, 0
		w.used = append(w.used, t)
	}
}

// addOther adds an instant or a value.
func (w *Writer) addOther(on *track, time uint64, slice uint32) {
	w.use(on)
	number := uint32(len(w.items))
	w.items = append(w.items, item{time, time, uint32(len(w.bodies)), on.uuid, on.others, slice})
	on.others = number
	on.events++
}

// appendHead appends the first fields of an item's message.
func (w *Writer) appendHead(eventType byte, name string) {
	w.name = w.names.id(&w.interned, name)
	w.bodies = appendUint(append(w.bodies, fieldType<<3, eventType), fieldNameIID, w.name)
}

// describe adds the descriptors of a track and of its parents to the chunk, unless it has them.
func (w *Writer) describe(t *track) {
	if t.described == w.chunk {
		return
	}
	t.described = w.chunk
	b := w.descriptors
	if t.parent != nil {
		w.describe(t.parent)
		b = w.descriptors
	}
	b, packet := begin(b, fieldPacket)
	b = appendUint(b, fieldSequenceID, sequence)
	b, descriptor := begin(b, fieldTrackDescriptor)
	b = appendUint(b, fieldUUID, uint64(t.uuid))
	if t.parent != nil {
		b = appendUint(b, fieldParentUUID, uint64(t.parent.uuid))
	}
	w.descriptors = packet.end(descriptor.end(t.describe(b)))
}

// Category adds a category to the last item.
func (w *Writer) Category(name string) {
	w.bodies = appendUint(w.bodies, fieldCategoryIID, w.categories.id(&w.interned, name))
}

// Location adds the place of the function to the last item.
func (w *Writer) Location(l Location) {
	for len(w.recent) <= int(w.name) {
		w.recent = append(w.recent, locationID{})
	}
	if len(l.Function) > maxNameBytes || len(l.File) > maxNameBytes {
		l = l.cut()
	}
	recent := &w.recent[w.name]
	if recent.id == 0 || recent.Location != l {
		*recent = locationID{l, w.locations.id(&w.interned, l)}
	}
	w.bodies = appendUint(w.bodies, fieldSourceLocationIID, recent.id)
}

// Flow connects the last item with all others of the same flow, in the order of their times.
func (w *Writer) Flow(id uint64) {
	if w.hasRoom() {
		w.bodies = appendFixed64(w.bodies, fieldFlowID, id)
	}
}

// Annotate adds an annotation to the last item. The function appends the value.
func (w *Writer) Annotate(key string, value func(*Annotation)) {
	if !w.hasRoom() {
		return
	}
	b, annotation := begin(w.bodies, fieldDebugAnnotation)
	w.bodies = appendUint(b, fieldAnnotationNameIID, w.keys.id(&w.interned, key))
	value((*Annotation)(w))
	w.bodies = annotation.end(w.bodies)
}

// Annotation appends the value of an annotation.
type Annotation Writer

// String appends a string.
func (a *Annotation) String(s string) {
	if len(s) <= maxInternedBytes {
		a.bodies = appendUint(a.bodies, fieldStringValueIID, a.values.id(&a.interned, s))
	} else {
		a.bodies = appendString(a.bodies, fieldStringValue, text(s, maxValueBytes))
	}
}

// Bool appends a truth value.
func (a *Annotation) Bool(v bool) {
	a.bodies = appendUint(a.bodies, fieldBoolValue, protowire.EncodeBool(v))
}

// Int appends a number.
func (a *Annotation) Int(v int64) { a.bodies = appendUint(a.bodies, fieldIntValue, uint64(v)) }

// Double appends a number.
func (a *Annotation) Double(v float64) { a.bodies = appendDouble(a.bodies, fieldDoubleValue, v) }

// Entry appends an entry of a map.
func (a *Annotation) Entry(key string, value func(*Annotation)) {
	if !(*Writer)(a).hasRoom() {
		return
	}
	b, entry := begin(a.bodies, fieldDictEntries)
	a.bodies = appendString(b, fieldAnnotationName, text(key, maxNameBytes))
	value(a)
	a.bodies = entry.end(a.bodies)
}

// Element appends an element of a list.
func (a *Annotation) Element(value func(*Annotation)) {
	if !(*Writer)(a).hasRoom() {
		return
	}
	b, element := begin(a.bodies, fieldArrayValues)
	a.bodies = b
	value(a)
	a.bodies = element.end(a.bodies)
}

// bytesOfEnd is the size of a packet that ends a slice, and of the fields around an event's message.
const bytesOfEnd, bytesAround = 14, 12

// size is about the size of the chunk's events.
func (w *Writer) size() int {
	return len(w.bodies) + len(w.interned) + len(w.items)*bytesAround + w.content.Slices*bytesOfEnd
}

// Full reports whether the chunk has enough events or descriptors, or its file as many tracks as allowed.
func (w *Writer) Full() bool {
	size := w.size()
	return size >= chunkBytes || size+len(w.descriptors) >= fullBytes || w.Crowded()
}

// hasRoom reports whether the chunk has room for one more part of the last item. It counts the part otherwise.
func (w *Writer) hasRoom() bool {
	if w.size()+len(w.descriptors) < maxChunkBytes {
		return true
	}
	w.omitted++
	return false
}

// Omit counts an attribute of the last item that is left out because the item has too many.
func (w *Writer) Omit() { w.omitted++ }

// Omit counts elements, entries or levels of the value that are left out because there are too many.
func (a *Annotation) Omit(n int) { a.omitted += int64(max(0, n)) }

// Omitted returns the number of attributes, instants, flows, entries and elements that were left out.
func (w *Writer) Omitted() int64 { return w.omitted }

// Content returns the number of things in the chunk.
func (w *Writer) Content() Content { return w.content }

// Tracks returns the number of tracks of the file.
func (w *Writer) Tracks() int { return len(w.tracks.all) }

// Overlapping returns the number of tracks that were made for slices that do not fit into their thread's.
func (w *Writer) Overlapping() int64 { return w.overlapping }

// Record returns the chunk as a record for the file, and begins the next one. The record is valid until the next call.
func (w *Writer) Record() ([]byte, error) {
	w.compressed.Reset()
	w.zlib.Reset(&w.compressed)
	w.encode()
	w.clearChunk()
	if err := w.zlib.Close(); err != nil {
		return nil, fmt.Errorf("compress a chunk: %w", err)
	}
	b, packet := begin(append(w.record[:0], Start...), fieldPacket)
	w.record = packet.end(appendBytes(b, fieldCompressedPackets, w.compressed.Bytes()))
	return w.record, nil
}

// clearChunk forgets the content of the chunk. It keeps the memory for the next one, because chunks have a bound.
func (w *Writer) clearChunk() {
	clear(w.used)
	w.used = w.used[:0]
	w.items, w.lastSlice, w.content = w.items[:1], 0, Content{}
	w.bodies, w.interned, w.descriptors = w.bodies[:0], w.interned[:0], w.descriptors[:0]
	for _, in := range []*interned{&w.names, &w.categories, &w.keys, &w.values} {
		in.clear()
	}
	clear(w.locations)
	clear(w.recent)
	w.recent = w.recent[:0]
}

// Start begins each record, and so each file: a packet that clears the state of the sequence.
var Start = string(func() []byte {
	b, packet := begin(nil, fieldPacket)
	b = appendUint(b, fieldSequenceID, sequence)
	return packet.end(appendUint(b, fieldSequenceFlags, sequenceStateCleared))
}())

// encode compresses the packets of the chunk: clock, interned data, descriptors, and groups of events by time. Readers sort events
// by time, so the file can have those of each busy track as a group. Repetitions are then closer together: files are smaller,
// and compressed in less time. The first group has the events of all other tracks, each with its track.
func (w *Writer) encode() {
	b := appendGroup(w.packets[:0], 0)
	b, packet := begin(b, fieldPacket)
	b = appendUint(b, fieldSequenceID, sequence)
	b = packet.end(appendBytes(b, fieldInternedData, w.interned))
	b = append(b, w.descriptors...)
	w.items = append(w.items, item{offset: uint32(len(w.bodies))})
	w.sorter.items = w.items
	w.compress(w.appendEvents(b, w.sorter.ofFew(w.used), true))
	for _, t := range w.used {
		if t.isBusy() {
			w.compress(w.appendEvents(appendGroup(w.packets[:0], t.uuid), w.sorter.ofTrack(t), false))
		}
	}
}

// compress compresses packets. An error is also that of the compressor's end.
func (w *Writer) compress(packets []byte) {
	w.packets = packets
	_, _ = w.zlib.Write(packets)
}

// appendEvents appends the events of a group. The clock counts from the event before, and begins at 0. The time is last in a
// packet, so all that packets have in common is in one piece, which makes files smaller by 7%.
func (w *Writer) appendEvents(b []byte, events []event, withTrack bool) []byte {
	before := uint64(0)
	for _, e := range events {
		it, next := &w.items[e.number()], &w.items[e.number()+1]
		time, message := it.end, fieldsOfEnd
		if !e.isEnd() {
			time, message = it.start, w.bodies[it.offset:next.offset]
		}
		if withTrack || len(message) > maxShort {
			b = appendLong(b, message, it.track, time-before)
		} else {
			b = appendShort(b, message, time-before)
		}
		before = time
	}
	return b
}

// maxShort is the size of a message whose packet has a length of one byte in any case.
const maxShort = 64

// appendShort appends the packet of an event with a short message. Most are.
func appendShort(b, message []byte, delay uint64) []byte {
	size := byte(len(message))
	b = append(b, fieldPacket<<3|byte(protowire.BytesType), size+5+byte(protowire.SizeVarint(delay)),
		fieldSequenceID<<3, sequence, fieldTrackEvent<<3|byte(protowire.BytesType), size)
	b = append(append(b, message...), fieldTimestamp<<3)
	return appendVarint(b, delay)
}

// appendLong appends the packet of any event, with its track.
func appendLong(b, message []byte, track uint32, delay uint64) []byte {
	b, packet := begin(b, fieldPacket)
	b = appendUint(b, fieldSequenceID, sequence)
	b, fields := begin(b, fieldTrackEvent)
	b = fields.end(append(appendUint(b, fieldTrackUUID, uint64(track)), message...))
	return packet.end(appendUint(b, fieldTimestamp, delay))
}

// fieldsOfEnd are those of an event that ends a slice.
var fieldsOfEnd = []byte{fieldType << 3, typeSliceEnd}

// appendGroup appends a packet that begins a group of events. It sets all clocks to 0: Unix time, which is the time of the
// file, and the incremental clock. It lets the events have the incremental clock, and the track if it is not 0.
func appendGroup(b []byte, track uint32) []byte {
	b, packet := begin(b, fieldPacket)
	b = appendUint(b, fieldSequenceID, sequence)
	b, snapshot := begin(b, fieldClockSnapshot)
	for _, id := range []uint64{clockRealtime, clockBoottime, clockIncremental} {
		var clock message
		b, clock = begin(b, fieldClocks)
		b = appendUint(b, fieldClockID, id)
		b = appendUint(b, fieldClockTimestamp, 0)
		if id == clockIncremental {
			b = appendUint(b, fieldIsIncremental, 1)
		}
		b = clock.end(b)
	}
	b = snapshot.end(appendUint(b, fieldPrimaryTraceClock, clockRealtime))
	b, defaults := begin(b, fieldPacketDefaults)
	b = appendUint(b, fieldTimestampClockID, clockIncremental)
	if track != 0 {
		var ofEvents message
		b, ofEvents = begin(b, fieldEventDefaults)
		b = ofEvents.end(appendUint(b, fieldTrackUUID, uint64(track)))
	}
	return packet.end(defaults.end(b))
}
