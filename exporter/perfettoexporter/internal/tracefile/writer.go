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

// chunkBytes is the size of a chunk's packets at which it is full.
const chunkBytes = 512 << 10

// Writer makes the records of a file. It is for one goroutine at a time.
type Writer struct {
	maxTracks, maxCounters int
	tracks                 tracks
	// chunk is the number of the current one. The first is 1.
	chunk uint32
	// overlapping counts the tracks for slices that do not fit into their thread's.
	overlapping int64

	// Of the current chunk: its events, their messages, interned data and descriptors. The number is that of the last
	// slice, value or instant without a slice.
	events      []event
	number      uint32
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
	// open is the event whose fields are being appended.
	open event
	last lastSlice

	sorter     sorter
	packets    []byte
	compressed bytes.Buffer
	zlib       *zlib.Writer
	record     []byte
}

// lastSlice is the latest slice: its number, its track, and its time.
type lastSlice struct {
	number, track uint32
	start, end    uint64
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
	s.End = max(s.Start, s.End)
	x := interval{start: s.Start, end: s.End, self: s.Self, parent: s.Parent, chunk: w.chunk}
	on := w.trackOf(p, t, &x, s.Trace)
	w.describe(on)
	w.last = lastSlice{w.number, on.uuid, s.Start, s.End}
	w.events = append(w.events, w.last.event(kindEnd, s.End))
	w.openEvent(w.last.event(kindBegin, s.Start), typeSliceBegin, s.Name)
}

// event is an event of the slice.
func (l *lastSlice) event(of kind, time uint64) event {
	return event{time: time, slice: l.number, track: l.track, kind: of, position: positionOf(time, l.start, l.end)}
}

// Instant adds an instant in the last slice. If its time is outside, it is an instant of the process.
func (w *Writer) Instant(p *Process, name string, time uint64) {
	w.close()
	in := w.last
	if time < in.start || time > in.end {
		w.describe(p.track)
		in.start, in.end, in.track = time, time, p.uuid
	}
	w.openEvent(in.event(kindInstant, time), typeInstant, name)
}

// LogRecord adds an instant to the chunk: of a thread, or of a process without one.
func (w *Writer) LogRecord(p *Process, t *Thread, name string, time uint64) {
	w.next()
	w.content.LogRecords++
	on := p.track
	if t != nil {
		on = t.lanes[0]
	}
	w.describe(on)
	w.openEvent(w.alone(on, time, kindInstant), typeInstant, name)
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
	w.describe(c.track)
	w.open = w.alone(c.track, time, kindBegin)
	w.open.offset = uint32(len(w.bodies))
	w.bodies = appendUint(w.bodies, fieldType, typeCounter)
}

// next closes the last event, and begins a slice, a value or an instant without a slice.
func (w *Writer) next() {
	w.close()
	if w.number == 0 {
		w.chunk++
	}
	w.number++
}

// alone is an event without a slice.
func (w *Writer) alone(on *track, time uint64, of kind) event {
	return event{time: time, slice: w.number, track: on.uuid, kind: of, position: empty}
}

func (w *Writer) openEvent(e event, eventType uint64, name string) {
	id := w.names.id(&w.interned, name)
	e.offset, e.name = uint32(len(w.bodies)), uint32(id)
	w.open = e
	w.bodies = appendUint(appendUint(w.bodies, fieldType, eventType), fieldNameIID, id)
}

// close ends the fields of the open event.
func (w *Writer) close() {
	if w.open.slice == 0 {
		return
	}
	w.open.size = uint32(len(w.bodies)) - w.open.offset
	w.events = append(w.events, w.open)
	w.open = event{}
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

// Category adds a category to the open event.
func (w *Writer) Category(name string) {
	w.bodies = appendUint(w.bodies, fieldCategoryIID, w.categories.id(&w.interned, name))
}

// Location adds the place of the function to the open event.
func (w *Writer) Location(l Location) {
	for len(w.recent) <= int(w.open.name) {
		w.recent = append(w.recent, locationID{})
	}
	recent := &w.recent[w.open.name]
	if recent.id == 0 || recent.Location != l {
		*recent = locationID{l, w.locations.id(&w.interned, l)}
	}
	w.bodies = appendUint(w.bodies, fieldSourceLocationIID, recent.id)
}

// Flow connects the open event with all others of the same flow, in the order of their times.
func (w *Writer) Flow(id uint64) { w.bodies = appendFixed64(w.bodies, fieldFlowID, id) }

// Annotate adds an annotation to the open event. The function appends the value.
func (w *Writer) Annotate(key string, value func(*Annotation)) {
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
	b, entry := begin(a.bodies, fieldDictEntries)
	a.bodies = appendString(b, fieldAnnotationName, text(key, maxNameBytes))
	value(a)
	a.bodies = entry.end(a.bodies)
}

// Element appends an element of a list.
func (a *Annotation) Element(value func(*Annotation)) {
	b, element := begin(a.bodies, fieldArrayValues)
	a.bodies = b
	value(a)
	a.bodies = element.end(a.bodies)
}

// bytesOfEnd is the size of a packet that ends a slice, and of the fields around an event's message.
const bytesOfEnd, bytesAround = 14, 12

// Full reports whether the chunk has enough events.
func (w *Writer) Full() bool {
	return len(w.bodies)+len(w.interned)+len(w.events)*(bytesOfEnd+bytesAround)/2 >= chunkBytes
}

// Content returns the number of things in the chunk.
func (w *Writer) Content() Content { return w.content }

// Tracks returns the number of tracks of the file.
func (w *Writer) Tracks() int { return len(w.tracks.all) }

// Overlapping returns the number of tracks that were made for slices that do not fit into their thread's.
func (w *Writer) Overlapping() int64 { return w.overlapping }

// Record returns the chunk as a record for the file, and begins the next one. The record is valid until the next call.
func (w *Writer) Record() ([]byte, error) {
	w.close()
	w.encode()
	w.compressed.Reset()
	w.zlib.Reset(&w.compressed)
	_, err := w.zlib.Write(w.packets)
	if err == nil {
		err = w.zlib.Close()
	}
	w.clearChunk()
	if err != nil {
		return nil, fmt.Errorf("compress %d bytes: %w", len(w.packets), err)
	}
	b, packet := begin(append(w.record[:0], Start...), fieldPacket)
	w.record = packet.end(appendBytes(b, fieldCompressedPackets, w.compressed.Bytes()))
	return w.record, nil
}

func (w *Writer) clearChunk() {
	w.events, w.number, w.content = w.events[:0], 0, Content{}
	w.bodies, w.interned, w.descriptors = w.bodies[:0], w.interned[:0], w.descriptors[:0]
	for _, in := range []*interned{&w.names, &w.categories, &w.keys, &w.values} {
		clear(in.ids)
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

// encode writes the packets of the chunk: clock, interned data, descriptors, and groups of events by time. The clock counts
// from the event before, and begins at 0 in each group. Events of group 0 have their tracks. The others have the one of the
// group.
func (w *Writer) encode() {
	b := appendGroup(w.packets[:0], 0)
	b, packet := begin(b, fieldPacket)
	b = appendUint(b, fieldSequenceID, sequence)
	b = packet.end(appendBytes(b, fieldInternedData, w.interned))
	b = append(b, w.descriptors...)
	before, group := uint64(0), uint64(0)
	for _, key := range w.sorter.sort(w.events, w.tracks.all) {
		e := &w.events[w.sorter.indexOf(key)]
		if g := w.sorter.groupOf(key); g != group {
			b = appendGroup(b, e.track)
			before, group = 0, g
		}
		b = w.appendEvent(b, e, group == 0, e.time-before)
		before = e.time
	}
	w.packets = b
}

// appendEvent appends the packet of an event. Its lengths are computed before, because most packets are small. The time is
// last, so all that packets have in common is in one piece, which makes files smaller by 7%.
func (w *Writer) appendEvent(b []byte, e *event, withTrack bool, delay uint64) []byte {
	size := int(e.size)
	if e.kind == kindEnd {
		size = len(fieldsOfEnd)
	}
	if withTrack {
		size += 1 + protowire.SizeVarint(uint64(e.track))
	}
	packet := 1 + protowire.SizeVarint(delay) + len(sequenceField) + 1 + protowire.SizeBytes(size)
	b = appendVarint(append(b, fieldPacket<<3|byte(protowire.BytesType)), uint64(packet))
	b = append(b, sequenceField...)
	b = appendVarint(append(b, fieldTrackEvent<<3|byte(protowire.BytesType)), uint64(size))
	if withTrack {
		b = appendUint(b, fieldTrackUUID, uint64(e.track))
	}
	if e.kind == kindEnd {
		b = append(b, fieldsOfEnd...)
	} else {
		b = append(b, w.bodies[e.offset:e.offset+e.size]...)
	}
	return appendVarint(append(b, fieldTimestamp<<3|byte(protowire.VarintType)), delay)
}

// fieldsOfEnd are those of an event that ends a slice.
var fieldsOfEnd = string([]byte{fieldType << 3, typeSliceEnd})

// sequenceField is the field of a packet that names its sequence.
var sequenceField = string([]byte{fieldSequenceID << 3, sequence})

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
