// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"errors"
	"fmt"
	"io"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Event is an event of a packet.
type Event struct {
	// Values are those of the fields of the event's scopes.
	Values
	Class *EventClass
	// Clock is the full value of the stream's clock; 0 without clock.
	Clock uint64
}

// UnixNano returns the event's time in nanoseconds since the Unix epoch; 0 without
// clock.
func (e *Event) UnixNano() int64 {
	if c := e.Class.Stream.Clock; c != nil {
		return c.UnixNano(e.Clock)
	}
	return 0
}

// Reader reads the packets of one stream, one after the other.
type Reader struct {
	// Packet is the one that Begin has begun.
	Packet Packet
	// Losses are what is missing between the packet before and the end of this one;
	// they hold until the next Begin.
	Losses []Loss
	// Event is the one that Next has read; it holds until the next one.
	Event Event

	trace *Trace
	// class is that of the stream; packets don't change it.
	class *StreamClass
	// header executes the programs of packets, m those of events.
	header, m machine
	past      past
	lossSpace [2]Loss
	// at is the bit at which the event begins that was read last; resting says that its
	// values were given up.
	at      uint64
	resting bool
	err     error
}

// NewReader returns a reader for one stream of a trace.
func NewReader(t *Trace) *Reader { return &Reader{trace: t} }

// Begin reads the header and the context of the stream's next packet; Packet and
// Losses say what is in them. The reader keeps the bytes until the next Begin. It
// fails if they aren't a whole packet of the trace; the reader is then as if the
// packet hadn't been given.
func (r *Reader) Begin(packet []byte) error {
	r.err = nil
	r.m.pos, r.m.end = 0, 0
	p, err := r.open(packet)
	if err == nil {
		err = checkSizes(&p, uint64(len(packet))*8)
	}
	if err == nil && r.class != nil && r.class != p.Class {
		err = fmt.Errorf("expected a packet of stream class %d as before, got one of %d", r.class.ID, p.Class.ID)
	}
	if err != nil {
		return fmt.Errorf("packet of %d bytes: %w", len(packet), err)
	}
	if !p.Has(metadata.RolePacketEnd) {
		p.End = max(p.Begin, r.m.clock)
	}
	r.class, r.Packet = p.Class, p
	r.Losses = r.losses(&p)
	r.past = r.past.with(&p)
	r.start(packet, &p)
	return nil
}

// start makes the machine ready for the events of a packet.
func (r *Reader) start(packet []byte, p *Packet) {
	m := &r.m
	m.data, m.packet = packet, r.header.slots
	m.pos, m.end = p.begun, p.Content
	m.turns = p.Content*maxTurnsPerBit + maxElements
	if p.Has(metadata.RoleClock) {
		m.clock = p.Begin
	}
	r.Event.data = packet
}

// open executes the programs of packet header and context.
func (r *Reader) open(data []byte) (Packet, error) {
	var p Packet
	t := r.trace
	if len(data) > MaxPacketBytes {
		return p, fmt.Errorf("expected at most %d bytes, got more", MaxPacketBytes)
	}
	if !t.meta.Declared {
		return p, errors.New("expected metadata with a trace before packets, got none")
	}
	m := &r.header
	m.data, m.pos, m.end = data, 0, uint64(len(data))*8
	m.side, m.budget, m.turns = m.side[:0], maxPacketElements, m.end*maxTurnsPerBit+maxElements
	// The slots of header and context are one run; elements of arrays in the header
	// come behind the context of the largest class.
	most := t.headerSlots
	for _, c := range t.classes {
		most = max(most, c.packetSlots)
	}
	m.top = 0
	m.reserve(int(most))
	if !m.exec(&t.headerProg, 0, len(t.headerProg.ops), 1) {
		return p, m.failure(&t.headerProg)
	}
	p.Values = Values{data: data, side: m.side, slots: m.slots}
	if err := r.headerFields(&p, t.header); err != nil {
		return p, err
	}
	class, err := t.streamClass(p.class, p.Has(metadata.RoleStreamClass))
	if err != nil {
		return p, err
	}
	p.Class = class
	m.reserve(max(0, int(class.packetSlots)-m.top))
	if !m.exec(&class.contextProg, 0, len(class.contextProg.ops), 1) {
		return p, m.failure(&class.contextProg)
	}
	p.Values = Values{data: data, side: m.side, slots: m.slots}
	p.begun = m.pos
	for _, f := range class.roles {
		if isInteger(f) && p.Present(f) {
			p.set(f)
		}
	}
	return p, nil
}

func isInteger(f *Field) bool { return f.Kind == Uint || f.Kind == Int }

// headerFields checks the magic number and the UUID from f on down and takes the
// class's ID.
func (r *Reader) headerFields(p *Packet, f *Field) error {
	switch {
	case f.roles == 0 || !p.Present(f):
	case isInteger(f):
		if f.roles&metadata.RoleMagic != 0 && p.Uint(f) != packetMagic {
			return fmt.Errorf("expected magic %#x, got %#x", uint64(packetMagic), p.Uint(f))
		}
		p.set(f)
	case f.Kind == Bytes && f.roles&metadata.RoleUUID != 0:
		uuid := r.trace.meta.UUID
		if b := p.Bytes(f); r.trace.meta.HasUUID && string(b) != string(uuid[:]) {
			return fmt.Errorf("expected UUID %x, got %x", uuid, b)
		}
	}
	if f.Kind == Array {
		return nil
	}
	for _, m := range f.Members {
		if err := r.headerFields(p, m); err != nil {
			return err
		}
	}
	return nil
}

// checkSizes completes the sizes of a packet of which so many bits were given, and
// checks them.
func checkSizes(p *Packet, given uint64) error {
	switch content, size := p.Has(metadata.RoleContentSize), p.Has(metadata.RolePacketSize); {
	case !content && !size:
		p.Content, p.Size = given, given
	case !content:
		p.Content = p.Size
	case !size:
		p.Size = p.Content
	}
	switch {
	case p.Content > p.Size:
		return fmt.Errorf("expected a content of at most the packet's %d bits, got %d", p.Size, p.Content)
	case p.Content < p.begun:
		return fmt.Errorf("expected a content of at least the header's and context's %d bits, got %d", p.begun, p.Content)
	case p.Content > given:
		return fmt.Errorf("expected the content's %d bits, got %d: %w", p.Content, given, io.ErrUnexpectedEOF)
	}
	return nil
}

// Size returns the size in bytes of the packet that begins with these bytes, which
// may be more or less than it; 0 if the packet doesn't say. It fails with
// io.ErrUnexpectedEOF if more bytes are needed to know. What Begin has begun can't be
// read on.
func (r *Reader) Size(begin []byte) (int, error) {
	r.m.pos, r.m.end = 0, 0
	p, err := r.open(begin)
	if err != nil {
		return 0, err
	}
	if !p.Has(metadata.RoleContentSize) && !p.Has(metadata.RolePacketSize) {
		return 0, nil
	}
	if !p.Has(metadata.RolePacketSize) {
		p.Size = (p.Content + 7) &^ 7
	}
	if p.Size%8 != 0 || p.Size == 0 || p.Size > MaxPacketBytes*8 {
		return 0, fmt.Errorf("expected a packet of 1 to %d whole bytes, got %d bits", MaxPacketBytes, p.Size)
	}
	return int(p.Size / 8), nil
}

// Next reads the packet's next event into Event. It returns false at the end of the
// packet, and where the packet doesn't fit its metadata: then Err says why.
func (r *Reader) Next() bool {
	m := &r.m
	if m.pos >= m.end {
		if m.isLarge() {
			r.release()
		}
		return false
	}
	r.at = m.pos
	class := r.class
	if len(m.slots) < class.slots {
		m.top = 0
		m.reserve(class.slots)
	}
	begin := m.pos
	m.top, m.budget = class.slots, mayHave(m.end-m.pos)
	if len(m.side) > 0 {
		m.side = m.side[:0]
	}
	if !r.eventHeader() {
		return false
	}
	c := class.Event(m.class)
	if c == nil {
		return r.stop(begin, fmt.Errorf("expected the ID of an event class of stream class %d, got %d", class.ID, m.class))
	}
	if !m.turn(c.turns) {
		m.fault = faultTurns
		return r.stop(begin, fmt.Errorf("event %q: %w", c.Name, m.failureOf(c.Fields)))
	}
	if !m.exec(&c.prog, 0, len(c.prog.ops), 1) {
		return r.stop(begin, fmt.Errorf("event %q: %w", c.Name, m.failure(&c.prog)))
	}
	if m.pos == begin {
		return r.stop(begin, fmt.Errorf("event %q: expected an event of one bit or more, got none", c.Name))
	}
	e := &r.Event
	e.Class, e.Clock = c, m.clock
	e.slots, e.side = m.slots, m.side
	return true
}

// Clock is the value of the stream's clock at the place that has been read: that of the
// last event, or before any the packet's begin. At the end of a packet, what LTTng
// discarded in it lies between this and the packet's End.
func (r *Reader) Clock() uint64 { return r.m.clock }

// eventHeader reads the header of an event.
func (r *Reader) eventHeader() bool {
	m, class := &r.m, r.class
	if class.fast != nil {
		if class.fast.read(m) {
			return true
		}
		return r.stop(m.pos, m.failureOf(class.EventHeader))
	}
	m.class = 0
	if !m.exec(&class.headerProg, 0, len(class.headerProg.ops), 1) {
		return r.stop(m.pos, m.failure(&class.headerProg))
	}
	return true
}

// stop ends the packet with an error about what begins at a bit.
func (r *Reader) stop(at uint64, err error) bool {
	r.err = fmt.Errorf("event at bit %d of a packet with %d: %w", at, r.m.end, err)
	r.m.pos, r.m.end = 0, 0
	return false
}

// Offset is the bit of the packet behind the event that Next has read, or behind the
// context where it hasn't read any.
func (r *Reader) Offset() uint64 { return r.m.pos }

// Err returns why Next returned false; nil at the end of a packet.
func (r *Reader) Err() error { return r.err }
