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
	// Packet is the last packet that Begin accepted.
	Packet Packet
	// Losses are the losses from the previous packet to the end of this one. They are valid until the next Begin.
	Losses []Loss
	// Event is the last event that Next read. It is valid until the next call.
	Event Event

	trace *Trace
	// class is the class of the stream. All packets have the same.
	class *StreamClass
	// header executes the programs of packets, m those of events.
	header, m machine
	past      past
	lossSpace [2]Loss
	// at is the first bit of the last event. unloaded is set while its values are dropped.
	at       uint64
	unloaded bool
	err      error
}

// NewReader returns a reader for one stream of a trace.
func NewReader(t *Trace) *Reader { return &Reader{trace: t} }

// Begin reads the header and the context of the stream's next packet, and sets Packet and Losses. The reader uses the
// bytes until the next Begin. Begin fails if the bytes are not a whole packet of the trace. Then the reader is in the
// same state as before the call, but without an open packet.
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

// start prepares the machine for the events of a packet.
func (r *Reader) start(packet []byte, p *Packet) {
	m := &r.m
	m.data, m.packet = packet, r.header.slots
	m.pos, m.end = p.begun, p.Content
	m.operations = p.Content*maxOperationsPerBit + maxElements
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
	m.side, m.budget, m.operations = m.side[:0], maxPacketElements, m.end*maxOperationsPerBit+maxElements
	// The slots of header and context are consecutive. Elements of arrays in the header follow the context of the
	// largest class.
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

// headerFields checks the magic number and the UUID in f and below, and stores the ID of the class.
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

// checkSizes completes and checks the sizes of a packet. given is the number of received bits.
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

// Size returns the size in bytes of the packet that begins with these bytes, which may be fewer or more than the
// packet. It returns 0 if the packet has no size, and io.ErrUnexpectedEOF if it needs more bytes. Size ends the
// packet that Begin opened.
func (r *Reader) Size(begin []byte) (int, error) {
	_, size, err := r.Head(begin)
	return size, err
}

// Head is Size, and also returns the header and the context of the packet. Their Content is 0 if the packet has no
// size.
func (r *Reader) Head(begin []byte) (p Packet, size int, err error) {
	r.m.pos, r.m.end = 0, 0
	p, err = r.open(begin)
	if err != nil {
		return p, 0, err
	}
	content, whole := p.Has(metadata.RoleContentSize), p.Has(metadata.RolePacketSize)
	switch {
	case !content && !whole:
		return p, 0, nil
	case !content:
		p.Content = p.Size
	case !whole:
		p.Size = (p.Content + 7) &^ 7
	}
	if p.Size%8 != 0 || p.Size == 0 || p.Size > MaxPacketBytes*8 {
		return p, 0, fmt.Errorf("expected a packet of 1 to %d whole bytes, got %d bits", MaxPacketBytes, p.Size)
	}
	return p, int(p.Size / 8), nil
}

// Next reads the packet's next event into Event. It returns false at the end of the packet, and if the packet does
// not fit its metadata. Then Err returns the error.
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
	m.top, m.budget = class.slots, maxArrayValues(m.end-m.pos)
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
	switch {
	case c.Unused && c.bits > 0 && c.bits <= m.end-m.pos:
		m.pos += c.bits
	case !m.countOperations(c.operations):
		m.fault = faultOperations
		return r.stop(begin, fmt.Errorf("event %q: %w", c.Name, m.failureOf(c.Fields)))
	case !m.exec(&c.prog, 0, len(c.prog.ops), 1):
		return r.stop(begin, fmt.Errorf("event %q: %w", c.Name, m.failure(&c.prog)))
	case m.pos == begin:
		return r.stop(begin, fmt.Errorf("event %q: expected an event of one bit or more, got none", c.Name))
	}
	e := &r.Event
	e.Class, e.Clock = c, m.clock
	e.slots, e.side = m.slots, m.side
	return true
}

// Clock returns the value of the stream's clock at the current position: that of the last event, or the begin of the
// packet before its first event. At the end of a packet, the events that LTTng discarded in it lie between this value
// and the packet's End.
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

// stop ends the packet with an error at a bit.
func (r *Reader) stop(at uint64, err error) bool {
	r.err = fmt.Errorf("event at bit %d of a packet with %d: %w", at, r.m.end, err)
	r.m.pos, r.m.end = 0, 0
	return false
}

// Offset returns the first bit after the last event, or after the context if Next has read no event.
func (r *Reader) Offset() uint64 { return r.m.pos }

// Err returns the reason why Next returned false, or nil at the end of a packet.
func (r *Reader) Err() error { return r.err }
