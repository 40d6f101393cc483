// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Batch is an unpacked batch. The next Unpack reuses its slices. Strings are not reused, but all
// strings of a batch share memory: clone those that you hold for long.
type Batch struct {
	Stream StreamID
	// Resolution of the source's clock in nanoseconds.
	Resolution int64
	// Next is one more than the highest sequence number that the receiver of
	// the stream has seen; 0: none yet.
	Next uint64
	// Received is the time at which the receiver closed the batch, in Unix nanoseconds.
	Received int64
	// TextKey is the attribute that shows the text of a span's function; empty: none.
	TextKey string

	Barriers   []Barrier
	Attributes []Attribute
	Functions  []Function
	Lanes      []Lane
	Exceptions []string
	Values     []Value
	Renames    []Rename

	rows         []byte
	baseTime     int64
	baseSequence uint64
}

// LayoutError is a difference between the data of a batch and the layout.
type LayoutError struct {
	// Offset is the position in the data, in bytes.
	Offset        int
	Expected, Got string
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("call event batch, byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

func layoutError(offset int, expected, got string, args ...any) error {
	return &LayoutError{Offset: offset, Expected: expected, Got: fmt.Sprintf(got, args...)}
}

// Len is the number of events.
func (b *Batch) Len() int { return len(b.rows) / eventSize }

// Events decodes events into dst, beginning with event number first, and returns their number:
// len(dst), or the rest of the batch.
func (b *Batch) Events(dst []Event, first int) int {
	rows := b.rows[first*eventSize:]
	n := min(len(dst), len(rows)/eventSize)
	base, epoch, resolution := b.baseSequence, b.baseTime, b.Resolution
	for i := range dst[:n] {
		row := (*[eventSize]byte)(rows)
		rows = rows[eventSize:]
		fields := binary.LittleEndian.Uint64(row[:])
		when := binary.LittleEndian.Uint64(row[12:])
		// Setting each field is faster: a literal of this size is built elsewhere and copied.
		e := &dst[i]
		e.Sequence = base + uint64(int64(int32(when)))
		e.Time = epoch + int64(when)>>32*resolution
		e.Line = binary.LittleEndian.Uint32(row[8:])
		e.Lane = uint16(fields >> 16)
		e.Function = uint16(fields >> 32)
		e.Exception = uint16(fields >> 48)
		e.Kind = Kind(fields)
	}
	return n
}

// Unpack reads data into b, and keeps a reference to data. After success every index of an event is
// inside its table, and every string is valid UTF-8. Unpack allocates in proportion to len(data),
// never to a number in data. The error is a *LayoutError.
func (b *Batch) Unpack(data []byte) error {
	if len(data) < headerSize || len(data) > MaxBatchBytes {
		return layoutError(0, fmt.Sprintf("%d to %d bytes", headerSize, MaxBatchBytes), "%d", len(data))
	}
	var s sections
	if err := s.measure(data); err != nil {
		return err
	}
	if err := checkHeader(data); err != nil {
		return err
	}
	b.header(data)
	if err := b.tables(data, &s); err != nil {
		return err
	}
	b.rows = data[headerSize:s.barriers]
	if err := b.checkEvents(); err != nil {
		return err
	}
	if err := b.unpackBarriers(data[s.barriers:s.attributes], s.barriers); err != nil {
		return err
	}
	return b.unpackAttributes(data[s.attributes:s.functions], s.attributes)
}

// sections are the offsets of the sections after the events.
type sections struct{ barriers, attributes, functions, lanes, exceptions, values, renames, strings int }

func (s *sections) measure(data []byte) error {
	sizes := [9]uint64{eventSize, barrierSize, attributeSize, functionSize, laneSize, exceptionSize, valueSize, renameSize, 1}
	// The header's offsets of the sections' counts. The renames' count is the last.
	counts := [9]int{56, 60, 64, 68, 72, 76, 80, 92, 84}
	begins := [10]uint64{headerSize}
	for i, size := range sizes {
		// Nine products of 32 bit numbers don't overflow.
		begins[i+1] = begins[i] + size*uint64(binary.LittleEndian.Uint32(data[counts[i]:]))
	}
	if begins[9] != uint64(len(data)) {
		return layoutError(56, fmt.Sprintf("counts that make %d bytes", len(data)), "%d bytes", begins[9])
	}
	*s = sections{
		barriers: int(begins[1]), attributes: int(begins[2]), functions: int(begins[3]), lanes: int(begins[4]),
		exceptions: int(begins[5]), values: int(begins[6]),
		renames: int(begins[7]), strings: int(begins[8]),
	}
	return nil
}

// checkHeader checks everything in the header except the counts.
func checkHeader(data []byte) error {
	le := binary.LittleEndian
	if StreamID(data[:16]).IsZero() {
		return layoutError(0, "a call stream ID", "zero")
	}
	if resolution := le.Uint64(data[16:]); resolution < 1 || resolution > MaxResolution {
		return layoutError(16, fmt.Sprintf("a clock resolution of 1 to %d ns", MaxResolution), "%d", resolution)
	}
	for _, offset := range [...]int{24, 48} {
		if t := le.Uint64(data[offset:]); t > maxTime {
			return layoutError(offset, "a time after 1970", "%d", int64(t))
		}
	}
	for _, offset := range [...]int{32, 40} {
		if n := le.Uint64(data[offset:]); n > MaxSequence {
			return layoutError(offset, fmt.Sprintf("a sequence number of at most %d", uint64(MaxSequence)), "%d", n)
		}
	}
	return nil
}

func (b *Batch) header(data []byte) {
	le := binary.LittleEndian
	b.Stream = StreamID(data[:16])
	b.Resolution = int64(le.Uint64(data[16:]))
	b.baseTime = int64(le.Uint64(data[24:]))
	b.baseSequence = le.Uint64(data[32:])
	b.Next = le.Uint64(data[40:])
	b.Received = int64(le.Uint64(data[48:]))
}

// tables unpacks the tables of indexes in events, and the renames. Their strings are slices of one
// string.
func (b *Batch) tables(data []byte, s *sections) error {
	le := binary.LittleEndian
	text := stringSection{offset: s.strings, rest: string(data[s.strings:])}
	if !utf8.ValidString(text.rest) {
		return layoutError(s.strings, "UTF-8", "something else")
	}
	b.TextKey = text.next(le.Uint32(data[88:]))
	b.Functions = b.Functions[:0]
	for t := data[s.functions:s.lanes]; len(t) > 0; t = t[functionSize:] {
		b.Functions = append(b.Functions, Function{
			Qualified: text.next(le.Uint32(t)), Display: text.next(le.Uint32(t[4:])),
			Text: text.next(le.Uint32(t[8:])), File: text.next(le.Uint32(t[12:])), Line: le.Uint32(t[16:]),
		})
	}
	b.Lanes = b.Lanes[:0]
	for t := data[s.lanes:s.exceptions]; len(t) > 0; t = t[laneSize:] {
		b.Lanes = append(b.Lanes, Lane{ID: le.Uint64(t), Name: text.next(le.Uint32(t[8:]))})
	}
	b.Exceptions = b.Exceptions[:0]
	for t := data[s.exceptions:s.values]; len(t) > 0; t = t[exceptionSize:] {
		b.Exceptions = append(b.Exceptions, text.next(le.Uint32(t)))
	}
	b.Values = b.Values[:0]
	for t := data[s.values:s.renames]; len(t) > 0; t = t[valueSize:] {
		v := Value{kind: ValueType(le.Uint32(t)), bits: le.Uint64(t[4:])}
		if v.kind == 0 || v.kind >= valueTypeEnd {
			return layoutError(s.renames-len(t), "a type of value", "%d", v.kind)
		}
		if v.kind == ValueString {
			v.text = text.next(uint32(min(v.bits, 1<<32-1)))
			v.bits = 0
		}
		b.Values = append(b.Values, v)
	}
	if err := b.unpackRenames(data[s.renames:s.strings], s.renames, &text); err != nil {
		return err
	}
	if text.bad || text.rest != "" {
		return layoutError(text.offset, "strings of the lengths in the tables, of whole characters", "%d bytes left", len(text.rest))
	}
	return nil
}

func (b *Batch) unpackRenames(data []byte, offset int, text *stringSection) error {
	if len(data) > MaxRenames*renameSize {
		return layoutError(offset, fmt.Sprintf("at most %d renames", MaxRenames), "%d", len(data)/renameSize)
	}
	le := binary.LittleEndian
	b.Renames = b.Renames[:0]
	for ; len(data) > 0; data, offset = data[renameSize:], offset+renameSize {
		sequence, t, first, provisional, reused := le.Uint64(data[8:]), le.Uint64(data[16:]), data[32], data[33], data[34]
		switch {
		case sequence > MaxSequence:
			return layoutError(offset+8, fmt.Sprintf("a sequence number of at most %d", uint64(MaxSequence)), "%d", sequence)
		case t > maxTime:
			return layoutError(offset+16, "a time after 1970", "%d", int64(t))
		case first > 1:
			return layoutError(offset+32, "0 or 1", "%d", first)
		case provisional > 1:
			return layoutError(offset+33, "0 or 1", "%d", provisional)
		case reused > 1:
			return layoutError(offset+34, "0 or 1", "%d", reused)
		}
		r := Rename{
			Lane: le.Uint64(data), Time: int64(t), First: first == 1, Rank: le.Uint32(data[28:]),
			Reused: reused == 1, Name: text.next(le.Uint32(data[24:])),
		}
		switch {
		case r.Reused:
			r.After = sequence
		case sequence < MaxSequence:
			// An earlier version wrote the first time that is certainly after the rename.
			r.Time = max(r.Time-b.Resolution, 0)
		}
		b.Renames = append(b.Renames, r)
	}
	return nil
}

// stringSection returns the strings of a batch one after the other. bad is set if a string is
// missing or ends inside a character.
type stringSection struct {
	rest   string
	offset int
	bad    bool
}

func (t *stringSection) next(n uint32) string {
	if t.bad || uint64(n) > uint64(len(t.rest)) || n > MaxNameBytes {
		t.bad = true
		return ""
	}
	s := t.rest[:n]
	t.rest, t.offset = t.rest[n:], t.offset+int(n)
	t.bad = t.rest != "" && !utf8.RuneStart(t.rest[0])
	return s
}

// bounds are the largest allowed indexes of an event.
type bounds struct{ lane, function, exception int }

func (b *Batch) checkEvents() error {
	// Fields that a kind of event does not use can have any value.
	const anything = 1<<16 - 1
	lane, function, exception := len(b.Lanes)-1, len(b.Functions)-1, len(b.Exceptions)
	byKind := [kindEnd]bounds{
		KindEnter:     {lane, function, anything},
		KindExit:      {lane, function, anything},
		KindExitTop:   {lane, anything, anything},
		KindThrow:     {lane, function, exception},
		KindUnwind:    {lane, function, exception},
		KindSkip:      {anything, anything, anything},
		KindEnterFrom: {lane, function, function},

		KindEnterOutermost: {lane, function, anything},
		KindFail:           {lane, function, exception},
	}
	// The smallest and the largest offset from the base that result in a sequence number.
	least := -int64(min(b.baseSequence, 1<<31))
	most := int64(min(MaxSequence-b.baseSequence, 1<<31-1))
	for rows := b.rows; len(rows) >= eventSize; rows = rows[eventSize:] {
		row := (*[eventSize]byte)(rows)
		fields := binary.LittleEndian.Uint64(row[:])
		sequence := int64(int32(binary.LittleEndian.Uint32(row[12:])))
		offset := headerSize + len(b.rows) - len(rows)
		kind := Kind(fields)
		if kind == 0 || kind >= kindEnd {
			return layoutError(offset, "a kind of event", "%d", kind)
		}
		bound := &byKind[kind]
		if n := int(uint16(fields >> 16)); n > bound.lane {
			return layoutError(offset+2, fmt.Sprintf("a lane of %d", len(b.Lanes)), "%d", n)
		}
		if n := int(uint16(fields >> 32)); n > bound.function {
			return layoutError(offset+4, fmt.Sprintf("a function of %d", len(b.Functions)), "%d", n)
		}
		if n := int(uint16(fields >> 48)); n > bound.exception {
			return layoutError(offset+6, fmt.Sprintf("an exception of %d", len(b.Exceptions)), "%d", n)
		}
		if sequence < least || sequence > most {
			return layoutError(offset+12, "a sequence number", "%d from base %d", sequence, b.baseSequence)
		}
	}
	return nil
}

func (b *Batch) unpackBarriers(data []byte, offset int) error {
	if len(data) > MaxBarriers*barrierSize {
		return layoutError(offset, fmt.Sprintf("at most %d barriers", MaxBarriers), "%d", len(data)/barrierSize)
	}
	b.Barriers = b.Barriers[:0]
	for ; len(data) > 0; data, offset = data[barrierSize:], offset+barrierSize {
		barrier := Barrier{
			From: binary.LittleEndian.Uint64(data), To: binary.LittleEndian.Uint64(data[8:]),
			Kind: BarrierKind(data[16]), Cause: Cause(data[17]),
		}
		if err := barrier.check(offset); err != nil {
			return err
		}
		b.Barriers = append(b.Barriers, barrier)
	}
	return nil
}

func (b *Batch) unpackAttributes(data []byte, offset int) error {
	b.Attributes = b.Attributes[:0]
	events, values, last := uint32(b.Len()), uint32(len(b.Values)), uint32(0)
	for ; len(data) > 0; data, offset = data[attributeSize:], offset+attributeSize {
		a := Attribute{
			Event: binary.LittleEndian.Uint32(data), Key: binary.LittleEndian.Uint32(data[4:]),
			Value: binary.LittleEndian.Uint32(data[8:]),
		}
		if a.Event >= events || a.Event < last {
			return layoutError(offset, fmt.Sprintf("an event from %d to %d", last, events), "%d", a.Event)
		}
		if a.Key >= values || a.Value >= values || b.Values[a.Key].kind != ValueString {
			return layoutError(offset+4, fmt.Sprintf("a string and a value of %d values", values), "%d and %d", a.Key, a.Value)
		}
		last = a.Event
		b.Attributes = append(b.Attributes, a)
	}
	return nil
}
