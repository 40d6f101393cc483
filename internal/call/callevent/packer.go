// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"encoding/binary"
	"fmt"
)

// Stream describes a call stream to a Packer.
type Stream struct {
	ID StreamID
	// Epoch is tick 0 of the stream's clock in Unix nanoseconds.
	Epoch int64
	// Resolution is the length of a tick in nanoseconds, 1 to MaxResolution.
	Resolution int64
	// TextKey is the attribute that shows the text of a span's function as the tracer sent it. It is
	// in the tracer's own namespace, such as "bytefrog.method.signature". Empty: spans don't show
	// it.
	TextKey string
}

// Packer packs the call events of one stream into batches, one after the other. Enter the
// functions, lanes and exceptions of an event into the tables, then add the event. If something no
// longer fits, or the batch is old enough: Close it, send it, and Reset.
//
// Indexes from the tables are valid until Reset. A caller that caches them compares Generation. A
// Packer is for one goroutine. A stream can have several.
type Packer struct {
	stream     Stream
	maxBytes   int
	generation uint32
	// closed: nothing can be added before Reset. events is the number of events at Close.
	closed bool
	events int

	// buf holds room for the header, then the events.
	buf []byte
	// room is the length that buf may reach before grow has to check the bounds.
	room         int
	baseSequence uint64
	baseTicks    int64
	minTicks     int64
	maxTicks     int64

	functions  functionTable
	lanes      table[Lane]
	exceptions table[string]
	values     table[Value]
	attributes []byte
	renames    renames
}

// NewPacker returns a Packer for batches of at most maxBytes, which is between
// MinBatchBytes and MaxBatchBytes.
func NewPacker(stream Stream, maxBytes int) (*Packer, error) {
	switch {
	case stream.ID.IsZero():
		return nil, fmt.Errorf("call stream ID is zero")
	case stream.Resolution < 1 || stream.Resolution > MaxResolution:
		return nil, fmt.Errorf("clock resolution is %d ns, expected 1 to %d", stream.Resolution, MaxResolution)
	case maxBytes < MinBatchBytes || maxBytes > MaxBatchBytes:
		return nil, fmt.Errorf("batch size is %d bytes, expected %d to %d", maxBytes, MinBatchBytes, MaxBatchBytes)
	}
	stream.TextKey = name(stream.TextKey)
	p := &Packer{
		stream: stream,
		// Barriers and the text key are written when the batch is closed. Their room is reserved.
		maxBytes:   maxBytes - MaxBarriers*barrierSize - len(stream.TextKey),
		functions:  functionTable{known: map[*Function]*knownFunction{}},
		lanes:      table[Lane]{index: map[Lane]uint16{}},
		exceptions: table[string]{index: map[string]uint16{}},
		values:     table[Value]{index: map[Value]uint16{}},
	}
	p.Reset()
	return p, nil
}

// Generation counts Resets.
func (p *Packer) Generation() uint32 { return p.generation }

// Len is the number of events in the current batch, also after Close.
func (p *Packer) Len() int {
	if p.closed {
		return p.events
	}
	return (len(p.buf) - headerSize) / eventSize
}

// Add adds an event. Its Sequence is at most MaxSequence, its Time is in ticks of the stream's
// clock, and its Lane, Function and Exception are from the Packer's tables (0 if its kind has
// none). It reports false, and adds nothing, if the batch is full, or if the event is further than
// 2^31 sequence numbers or ticks from the batch's first.
func (p *Packer) Add(e *Event) bool {
	n := len(p.buf)
	if n+eventSize > p.room && !p.grow() {
		return false
	}
	if n == headerSize {
		p.baseSequence, p.baseTicks = e.Sequence, e.Time
		p.minTicks, p.maxTicks = e.Time, e.Time
	}
	sequence, ticks := int64(e.Sequence-p.baseSequence), e.Time-p.baseTicks
	if sequence != int64(int32(sequence)) || ticks != int64(int32(ticks)) {
		return false
	}
	p.minTicks, p.maxTicks = min(p.minTicks, e.Time), max(p.maxTicks, e.Time)
	p.buf = p.buf[:n+eventSize]
	row := (*[eventSize]byte)(p.buf[n:])
	le := binary.LittleEndian
	le.PutUint64(row[:], uint64(e.Kind)|uint64(e.Lane)<<16|uint64(e.Function)<<32|uint64(e.Exception)<<48)
	le.PutUint32(row[8:], e.Line)
	le.PutUint64(row[12:], uint64(uint32(sequence))|uint64(ticks)<<32)
	return true
}

// size is the size of the batch so far, without barriers.
func (p *Packer) size() int {
	return len(p.buf) + p.functions.bytes() + p.lanes.bytes() + p.exceptions.bytes() + p.values.bytes() + len(p.attributes) +
		len(p.renames.fixed) + len(p.renames.strings)
}

// Held is about the memory of the Packer in bytes, with its buffers for the next batches and the
// strings of functions. Callers that count these strings themselves use Memory.
func (p *Packer) Held() int {
	const packer = 2 << 10
	// Tables have their entries twice: as bytes of the batch, and to find them.
	tables := cap(p.functions.fixed) + cap(p.functions.strings) + p.functions.knownBytes
	tables += 2 * (p.lanes.bytes() + p.exceptions.bytes() + p.values.bytes() + len(p.attributes) + len(p.renames.fixed) + len(p.renames.strings))
	return packer + cap(p.buf) + tables
}

// grow makes room for an event, unless the batch is full.
func (p *Packer) grow() bool {
	if p.closed || p.size()+eventSize > p.maxBytes {
		return false
	}
	if len(p.buf)+eventSize > cap(p.buf) {
		bigger := make([]byte, len(p.buf), min(max(2*cap(p.buf), 4<<10), p.maxBytes))
		copy(bigger, p.buf)
		p.buf = bigger
	}
	p.narrow()
	return true
}

// narrow sets room to the rest of the capacity that the tables do not use.
func (p *Packer) narrow() {
	p.room = min(cap(p.buf), p.maxBytes-(p.size()-len(p.buf)))
}

// Memory is about the memory of the Packer in bytes, without the strings of functions. Callers that
// do not count these strings themselves use Held.
func (p *Packer) Memory() int {
	const entry = 64 // of a map, about
	return cap(p.buf) + cap(p.attributes) + cap(p.renames.fixed) + cap(p.renames.strings) +
		len(p.functions.known)*knownFunctionBytes + cap(p.functions.fixed) + cap(p.functions.strings) +
		p.lanes.memory(entry/laneSize) + p.exceptions.memory(entry/exceptionSize) + p.values.memory(entry/valueSize)
}

// Reset begins the next batch.
func (p *Packer) Reset() {
	p.generation++
	p.closed = false
	if p.buf == nil {
		p.buf = make([]byte, headerSize, 4<<10)
	}
	p.buf = p.buf[:headerSize]
	p.functions.reset()
	p.lanes.reset()
	p.exceptions.reset()
	p.values.reset()
	p.attributes = p.attributes[:0]
	p.renames = renames{p.renames.fixed[:0], p.renames.strings[:0]}
	p.narrow()
}

// Packed is a closed batch. Data is valid until the next use of the Packer.
type Packed struct {
	Stream StreamID
	Data   []byte
	Events int
	// First and Last are the smallest and largest time of the events in Unix nanoseconds. Without
	// events both are the time of closing.
	First, Last int64
}

// Close finishes the batch. The caller remembers the barriers of the stream, because batches repeat
// them. barriers are those that the package comment describes, MaxBarriers at most. next is one more
// than the highest number that the receiver has received. received is the current time in Unix
// nanoseconds. Nothing can be added before Reset. After an error, such as an impossible barrier,
// the batch is still open.
func (p *Packer) Close(barriers []Barrier, next uint64, received int64) (Packed, error) {
	if p.closed {
		return Packed{}, fmt.Errorf("call event batch is already closed, expected Reset first")
	}
	if len(barriers) > MaxBarriers {
		return Packed{}, fmt.Errorf("%d barriers for one batch, expected at most %d", len(barriers), MaxBarriers)
	}
	events := p.Len()
	for i, barrier := range barriers {
		if err := barrier.check(headerSize + events*eventSize + i*barrierSize); err != nil {
			return Packed{}, err
		}
	}
	packed := Packed{Stream: p.stream.ID, Events: events, First: received, Last: received}
	baseTime := received
	if events > 0 {
		baseTime = min(max(p.stream.Epoch+p.baseTicks*p.stream.Resolution, 0), maxTime)
		packed.First = p.stream.Epoch + p.minTicks*p.stream.Resolution
		packed.Last = p.stream.Epoch + p.maxTicks*p.stream.Resolution
	} else {
		p.baseSequence = next
	}

	h := p.buf[:headerSize]
	copy(h, p.stream.ID[:])
	le := binary.LittleEndian
	le.PutUint64(h[16:], uint64(p.stream.Resolution))
	le.PutUint64(h[24:], uint64(baseTime))
	le.PutUint64(h[32:], p.baseSequence)
	le.PutUint64(h[40:], next)
	le.PutUint64(h[48:], uint64(received))
	text := len(p.stream.TextKey) + len(p.functions.strings) + len(p.lanes.strings) + len(p.exceptions.strings) + len(p.values.strings) +
		len(p.renames.strings)
	for i, n := range [8]int{
		events, len(barriers), len(p.attributes) / attributeSize,
		p.functions.entries, len(p.lanes.index), len(p.exceptions.index), len(p.values.index), text,
	} {
		le.PutUint32(h[56+4*i:], uint32(n))
	}
	le.PutUint32(h[88:], uint32(len(p.stream.TextKey)))
	le.PutUint32(h[92:], uint32(p.Renames()))

	if err := checkHeader(h); err != nil {
		return Packed{}, err
	}

	b := p.buf
	for _, barrier := range barriers {
		b = le.AppendUint64(b, barrier.From)
		b = le.AppendUint64(b, barrier.To)
		b = append(b, byte(barrier.Kind), byte(barrier.Cause), 0, 0, 0, 0, 0, 0)
	}
	for _, section := range [...][]byte{
		p.attributes, p.functions.fixed, p.lanes.fixed, p.exceptions.fixed, p.values.fixed, p.renames.fixed,
		[]byte(p.stream.TextKey), p.functions.strings, p.lanes.strings, p.exceptions.strings, p.values.strings,
		p.renames.strings,
	} {
		b = append(b, section...)
	}
	p.buf, p.closed, p.events, p.room = b, true, events, 0
	packed.Data = b
	return packed, nil
}
