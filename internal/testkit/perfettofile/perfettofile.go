// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package perfettofile reads Perfetto's trace files with slow and simple code, as Perfetto's trace processor does. Tests
// compare its results with spans, so it shares no code with the exporter: it has the field numbers of Perfetto's schema
// once more. It supports what a file of slices, instants, flows and counters needs, and refuses everything else.
package perfettofile

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Slice is a slice or an instant of a track.
type Slice struct {
	Track      *Track
	Name       string
	Categories []string
	Start, End uint64
	// Parent is the slice around it in its track, and Depth the number of those around it.
	Parent  *Slice
	Depth   int
	Instant bool
	// Open: the file has no end of the slice.
	Open  bool
	Args  map[string]any
	Flows []uint64
}

// Track is a track with its descriptor.
type Track struct {
	UUID        uint64
	Name        string
	Description string
	// Process and Thread are those of the track or of one above it; Thread may be nil.
	Process *Process
	Thread  *Thread
	// IsThreads: the track is the thread's own one.
	IsThreads bool
	// Counter is that of the track, or nil.
	Counter *Counter

	parent uint64
	open   []*Slice
}

// Process is a process.
type Process struct {
	PID  int64
	Name string
}

// Thread is a thread.
type Thread struct {
	PID, TID int64
	Name     string
}

// Counter is the unit of a track with values, as a reader shows it.
type Counter struct{ Unit string }

// Value is a value of a counter.
type Value struct {
	Track *Track
	Time  uint64
	Value float64
}

// Trace is the content of a file. Slices and values are in the order of their times.
type Trace struct {
	Slices []*Slice
	Values []*Value
	Tracks map[uint64]*Track
	// Chunks is the number of compressed packets, and Packets that of all others.
	Chunks, Packets int
}

// Open reads a file, which must be whole.
func Open(path string) (*Trace, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := Read(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Read reads the content of a file, which must be whole.
func Read(content []byte) (*Trace, error) {
	t := &reading{Trace: Trace{Tracks: map[uint64]*Track{}}}
	if err := t.packets(content); err != nil {
		return nil, err
	}
	// Readers sort by time, and keep the order of the file for equal times.
	slices.SortStableFunc(t.events, func(a, b *event) int {
		switch {
		case a.time < b.time:
			return -1
		case a.time > b.time:
			return 1
		}
		return 0
	})
	for _, e := range t.events {
		if err := t.apply(e); err != nil {
			return nil, err
		}
	}
	return &t.Trace, t.resolve()
}

// field is a field of a message: a number, or bytes.
type field struct {
	number protowire.Number
	value  uint64
	bytes  []byte
}

// fields splits a message.
func fields(b []byte) (all []field, err error) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, fmt.Errorf("tag: %w", protowire.ParseError(n))
		}
		b = b[n:]
		f := field{number: number}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			return nil, fmt.Errorf("field %d has wire type %d", number, kind)
		}
		if n < 0 {
			return nil, fmt.Errorf("field %d: %w", number, protowire.ParseError(n))
		}
		b = b[n:]
		all = append(all, f)
	}
	return all, nil
}

// state is the incremental state of a packet sequence.
type state struct {
	categories, names, keys, values map[uint64]string
	locations                       map[uint64]map[string]any
	defaultClock, defaultTrack      uint64
	clocks                          map[uint64]uint64
	valid                           bool
}

type event struct {
	time, track, kind uint64
	slice             Slice
	value             float64
}

type reading struct {
	Trace
	state  state
	events []*event
}

func (t *reading) packets(b []byte) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	for i, f := range all {
		if f.number != 1 || f.bytes == nil {
			return fmt.Errorf("packet %d: expected field 1, got %d", i, f.number)
		}
		if err := t.packet(f.bytes); err != nil {
			return fmt.Errorf("packet %d: %w", i, err)
		}
	}
	return nil
}

func (t *reading) packet(b []byte) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	byNumber := map[protowire.Number]field{}
	for _, f := range all {
		byNumber[f.number] = f
	}
	if f, ok := byNumber[50]; ok {
		return t.compressed(f.bytes)
	}
	t.Packets++
	if f, ok := byNumber[10]; !ok || f.value != 1 {
		return fmt.Errorf("expected sequence 1, got %d", f.value)
	}
	if byNumber[13].value&1 != 0 {
		t.state = state{
			categories: map[uint64]string{}, names: map[uint64]string{}, keys: map[uint64]string{}, values: map[uint64]string{},
			locations: map[uint64]map[string]any{}, clocks: map[uint64]uint64{}, valid: true,
		}
	}
	if !t.state.valid {
		return fmt.Errorf("the state was not cleared before")
	}
	for _, f := range all {
		var err error
		switch f.number {
		case 8, 10, 11, 13:
		case 6:
			err = t.snapshot(f.bytes)
		case 12:
			err = t.internedData(f.bytes)
		case 59:
			err = t.defaults(f.bytes)
		case 60:
			err = t.descriptor(f.bytes)
		default:
			err = fmt.Errorf("unknown field %d", f.number)
		}
		if err != nil {
			return err
		}
	}
	if f, ok := byNumber[11]; ok {
		if _, ok := byNumber[6]; ok {
			return fmt.Errorf("an event in a packet with a clock snapshot would be lost")
		}
		return t.trackEvent(f.bytes, t.time(byNumber[8].value))
	}
	return nil
}

// defaults replaces all defaults.
func (t *reading) defaults(b []byte) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	t.state.defaultClock, t.state.defaultTrack = 0, 0
	for _, f := range all {
		switch f.number {
		case 58:
			t.state.defaultClock = f.value
		case 11:
			ofEvents, err := fields(f.bytes)
			if err != nil {
				return err
			}
			for _, f := range ofEvents {
				if f.number != 11 {
					return fmt.Errorf("unknown field %d of the defaults of events", f.number)
				}
				t.state.defaultTrack = f.value
			}
		default:
			return fmt.Errorf("unknown field %d of defaults", f.number)
		}
	}
	return nil
}

func (t *reading) compressed(b []byte) error {
	t.Chunks++
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	inner, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := t.packets(inner); err != nil {
		return fmt.Errorf("chunk %d: %w", t.Chunks, err)
	}
	return nil
}

// time is the time of an event by the clock of the sequence.
func (t *reading) time(timestamp uint64) uint64 {
	if last, ok := t.state.clocks[t.state.defaultClock]; ok {
		timestamp += last
		t.state.clocks[t.state.defaultClock] = timestamp
	}
	return timestamp
}

func (t *reading) snapshot(b []byte) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	var times []uint64
	for _, f := range all {
		if f.number != 1 {
			continue
		}
		clock, err := fields(f.bytes)
		if err != nil {
			return err
		}
		var id, time, incremental uint64
		for _, c := range clock {
			switch c.number {
			case 1:
				id = c.value
			case 2:
				time = c.value
			case 3:
				incremental = c.value
			}
		}
		times = append(times, time)
		if incremental != 0 {
			t.state.clocks[id] = time
		}
	}
	for _, time := range times {
		if time != times[0] {
			return fmt.Errorf("expected clocks of equal times, got %v", times)
		}
	}
	return nil
}

func (t *reading) internedData(b []byte) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	for _, f := range all {
		entry, err := fields(f.bytes)
		if err != nil {
			return err
		}
		if f.number == 4 {
			location := map[string]any{}
			for _, e := range entry[1:] {
				switch e.number {
				case 2:
					location["file_name"] = string(e.bytes)
				case 3:
					location["function_name"] = string(e.bytes)
				case 4:
					location["line_number"] = int64(e.value)
				}
			}
			t.state.locations[entry[0].value] = location
			continue
		}
		into := map[protowire.Number]map[uint64]string{1: t.state.categories, 2: t.state.names, 3: t.state.keys, 29: t.state.values}[f.number]
		if into == nil || len(entry) != 2 || entry[0].value == 0 {
			return fmt.Errorf("interned data of field %d: %v", f.number, entry)
		}
		if _, ok := into[entry[0].value]; ok {
			return fmt.Errorf("interned data of field %d: number %d is defined twice", f.number, entry[0].value)
		}
		into[entry[0].value] = string(entry[1].bytes)
	}
	return nil
}

func (t *reading) descriptor(b []byte) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	var track Track
	for _, f := range all {
		switch f.number {
		case 1:
			track.UUID = f.value
		case 2:
			track.Name = string(f.bytes)
		case 3:
			track.Process = &Process{}
			process, err := fields(f.bytes)
			if err != nil {
				return err
			}
			for _, p := range process {
				switch p.number {
				case 1:
					track.Process.PID = int64(p.value)
				case 6:
					track.Process.Name = string(p.bytes)
				}
			}
		case 4:
			track.Thread, track.IsThreads = &Thread{}, true
			thread, err := fields(f.bytes)
			if err != nil {
				return err
			}
			for _, p := range thread {
				switch p.number {
				case 1:
					track.Thread.PID = int64(p.value)
				case 2:
					track.Thread.TID = int64(p.value)
				case 5:
					track.Thread.Name = string(p.bytes)
				}
			}
		case 5:
			track.parent = f.value
		case 8:
			track.Counter = &Counter{}
			counter, err := fields(f.bytes)
			if err != nil {
				return err
			}
			for _, c := range counter {
				switch c.number {
				case 3:
					track.Counter.Unit = map[uint64]string{1: "ns", 2: "count", 3: "bytes"}[c.value]
				case 6:
					track.Counter.Unit = string(c.bytes)
				default:
					return fmt.Errorf("unknown field %d of a counter", c.number)
				}
			}
		case 14:
			track.Description = string(f.bytes)
		case 15:
			if f.value != 2 {
				return fmt.Errorf("track %d is joined with others", track.UUID)
			}
		default:
			return fmt.Errorf("unknown field %d of a track descriptor", f.number)
		}
	}
	if track.UUID == 0 {
		return fmt.Errorf("a track without a number")
	}
	if before, ok := t.Tracks[track.UUID]; ok {
		if before.Name != track.Name || before.parent != track.parent || before.IsThreads != track.IsThreads {
			return fmt.Errorf("track %d is described twice, and differently", track.UUID)
		}
		if track.Thread != nil && track.Thread.Name != "" {
			before.Thread.Name = track.Thread.Name
		}
		return nil
	}
	t.Tracks[track.UUID] = &track
	return nil
}

// trackEvent reads an event. A name that is not defined before is an error.
func (t *reading) trackEvent(b []byte, time uint64) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	if time > math.MaxInt64 {
		return fmt.Errorf("the time %d is after the year 2262", time)
	}
	e := &event{time: time, track: t.state.defaultTrack, slice: Slice{Args: map[string]any{}}}
	for _, f := range all {
		switch f.number {
		case 3:
			name, ok := t.state.categories[f.value]
			if !ok {
				return fmt.Errorf("category %d is not defined", f.value)
			}
			e.slice.Categories = append(e.slice.Categories, name)
		case 4:
			if err := t.annotation(f.bytes, e.slice.Args); err != nil {
				return err
			}
		case 9:
			e.kind = f.value
		case 10:
			name, ok := t.state.names[f.value]
			if !ok {
				return fmt.Errorf("name %d is not defined", f.value)
			}
			e.slice.Name = name
		case 11:
			e.track = f.value
		case 30:
			e.value = float64(int64(f.value))
		case 44:
			e.value = math.Float64frombits(f.value)
		case 34:
			location, ok := t.state.locations[f.value]
			if !ok {
				return fmt.Errorf("location %d is not defined", f.value)
			}
			for key, value := range location {
				e.slice.Args["source."+key] = value
			}
		case 47:
			e.slice.Flows = append(e.slice.Flows, f.value)
		default:
			return fmt.Errorf("unknown field %d of a track event", f.number)
		}
	}
	if t.Tracks[e.track] == nil {
		return fmt.Errorf("track %d has no descriptor", e.track)
	}
	t.events = append(t.events, e)
	return nil
}

// annotation reads an annotation into a map.
func (t *reading) annotation(b []byte, into map[string]any) error {
	all, err := fields(b)
	if err != nil {
		return err
	}
	var key string
	var value any
	dict, list := map[string]any{}, []any(nil)
	for _, f := range all {
		switch f.number {
		case 1:
			name, ok := t.state.keys[f.value]
			if !ok {
				return fmt.Errorf("the name %d of an annotation is not defined", f.value)
			}
			key = name
		case 2:
			value = f.value != 0
		case 4:
			value = int64(f.value)
		case 5:
			value = math.Float64frombits(f.value)
		case 6:
			value = string(f.bytes)
		case 10:
			key = string(f.bytes)
		case 11:
			if err := t.annotation(f.bytes, dict); err != nil {
				return err
			}
			value = dict
		case 12:
			element := map[string]any{}
			if err := t.annotation(f.bytes, element); err != nil {
				return err
			}
			list = append(list, element[""])
			value = list
		case 17:
			text, ok := t.state.values[f.value]
			if !ok {
				return fmt.Errorf("the value %d of an annotation is not defined", f.value)
			}
			value = text
		default:
			return fmt.Errorf("unknown field %d of an annotation", f.number)
		}
	}
	into[key] = value
	return nil
}

// apply begins or ends a slice. An end closes the slice of its track that began last.
func (t *reading) apply(e *event) error {
	track := t.Tracks[e.track]
	switch e.kind {
	case 1, 3:
		s := &e.slice
		s.Track, s.Start, s.End, s.Instant, s.Open = track, e.time, e.time, e.kind == 3, e.kind == 1
		if n := len(track.open); n > 0 {
			s.Parent, s.Depth = track.open[n-1], n
		}
		if !s.Instant {
			track.open = append(track.open, s)
		}
		t.Slices = append(t.Slices, s)
	case 4:
		if track.Counter == nil {
			return fmt.Errorf("track %d has a value and is no counter", e.track)
		}
		t.Values = append(t.Values, &Value{track, e.time, e.value})
	case 2:
		n := len(track.open)
		if n == 0 {
			return fmt.Errorf("track %d has an end at %d without a begin", e.track, e.time)
		}
		track.open[n-1].End, track.open[n-1].Open = e.time, false
		track.open = track.open[:n-1]
	default:
		return fmt.Errorf("unknown type %d of an event", e.kind)
	}
	return nil
}

// resolve finds the process and the thread of each track.
func (t *reading) resolve() error {
	for _, track := range t.Tracks {
		for above := track; track.Process == nil; {
			parent, ok := t.Tracks[above.parent]
			if !ok {
				return fmt.Errorf("track %d belongs to no process", track.UUID)
			}
			track.Process, above = parent.Process, parent
			if track.Thread == nil {
				track.Thread = parent.Thread
			}
		}
	}
	return nil
}
