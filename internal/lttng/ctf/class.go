// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"
	"iter"
	"maps"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// StreamClass is a stream class: the layout of its packets, and the parts of events that all its event classes share.
type StreamClass struct {
	ID    uint64
	Trace *Trace
	// Clock is the clock of the times of packets and events, nil without clock.
	Clock *Clock
	// The roots of the scopes that all packets and events have.
	PacketHeader, PacketContext, EventHeader, EventCommonContext *Field

	meta *metadata.Stream
	// roles are the fields of packet header and context that have a role for the reader.
	roles       []*Field
	contextProg program
	headerProg  program
	headerEnd   position
	// fast is the event header if it is one of the two of LTTng.
	fast *fastHeader
	// packetSlots, headerSlots and contextSlots are the slots behind those of the
	// packet context, the event header and the common context.
	packetSlots, headerSlots, contextSlots uint32
	// slots is the number of slots of the largest event, without the elements of arrays.
	slots int

	// Events by ID. dense holds small IDs, sparse holds all.
	dense  []*EventClass
	sparse map[uint64]*EventClass
}

// EventClass is an event class.
type EventClass struct {
	ID   uint64
	Name string
	// Index is the number of event classes of the trace that were compiled before this one. Consumers use it as an
	// index for their own data.
	Index  int
	Stream *StreamClass
	// Meta is the declaration in the metadata: log level, EMF URI.
	Meta *metadata.Event
	// Context and Fields are the roots of the event's own scopes.
	Context, Fields *Field
	// Unused may be set if nobody uses the values of the class's events. Then readers pass over fields of fixed sizes.
	// These events have a class and a time, and their values mean nothing.
	Unused bool

	prog program
	// bits is the size of all contexts and fields of an event, if it is the same for each; otherwise 0.
	bits uint64
	// operations is the maximum number of operations for one event, without those of arrays.
	operations uint64
}

// Scope returns the root of a scope; nil for NoScope.
func (c *EventClass) Scope(s metadata.Scope) *Field {
	switch s {
	case metadata.PacketHeader:
		return c.Stream.PacketHeader
	case metadata.PacketContext:
		return c.Stream.PacketContext
	case metadata.EventHeader:
		return c.Stream.EventHeader
	case metadata.EventCommonContext:
		return c.Stream.EventCommonContext
	case metadata.EventContext:
		return c.Context
	case metadata.EventFields:
		return c.Fields
	}
	return nil
}

// Field returns the field at a path in a scope, as Field.Lookup does, or nil.
func (c *EventClass) Field(s metadata.Scope, path string) *Field {
	root := c.Scope(s)
	if root == nil || path == "" {
		return nil
	}
	return root.Lookup(path)
}

// Event returns the event class with this ID, or nil.
func (s *StreamClass) Event(id uint64) *EventClass {
	if id < uint64(len(s.dense)) {
		return s.dense[id]
	}
	return s.sparse[id]
}

// Events returns all event classes, in any order.
func (s *StreamClass) Events() iter.Seq[*EventClass] { return maps.Values(s.sparse) }

// maxSparseFactor limits the dense table: its length may be at most this many times the number of classes.
const maxSparseFactor = 4

// addClass adds an event class to the tables.
func (s *StreamClass) addClass(c *EventClass) {
	if s.sparse == nil {
		s.sparse = map[uint64]*EventClass{}
	}
	s.sparse[c.ID] = c
	limit := uint64(maxSparseFactor*len(s.sparse) + manyMembers)
	if c.ID >= limit {
		return
	}
	if n := c.ID + 1; n > uint64(len(s.dense)) {
		grown := make([]*EventClass, min(limit, max(n, 2*uint64(len(s.dense)))))
		for id := range grown {
			grown[id] = s.sparse[uint64(id)]
		}
		s.dense = grown
	}
	s.dense[c.ID] = c
}

// addStream compiles a stream class.
func (t *Trace) addStream(m *metadata.Stream) error {
	if t.streams[m.ID] != nil {
		return fmt.Errorf("stream class %d: expected its declaration before packets are read, got it after packets", m.ID)
	}
	s := &StreamClass{ID: m.ID, Trace: t, meta: m, PacketHeader: t.header}
	if err := t.compileStream(s); err != nil {
		return fmt.Errorf("stream class %d: %w", m.ID, err)
	}
	t.streams[m.ID] = s
	t.classes = append(t.classes, s)
	return nil
}

func (t *Trace) compileStream(s *StreamClass) (err error) {
	if s.PacketContext, s.packetSlots, err = t.build(metadata.PacketContext, s.meta.PacketContext, t.headerSlots); err != nil {
		return err
	}
	if err = checkPacketSlots(s.packetSlots); err != nil {
		return err
	}
	if s.EventHeader, s.headerSlots, err = t.build(metadata.EventHeader, s.meta.EventHeader, 0); err != nil {
		return err
	}
	if s.EventCommonContext, s.contextSlots, err = t.build(metadata.EventCommonContext, s.meta.EventContext, s.headerSlots); err != nil {
		return err
	}
	known := s.scopes()
	for _, root := range []*Field{s.PacketContext, s.EventHeader, s.EventCommonContext} {
		if err := known.resolve(root); err != nil {
			return err
		}
	}
	if err := t.findClock(s); err != nil {
		return err
	}
	s.roles = appendRoles(appendRoles(nil, t.header), s.PacketContext)
	if s.contextProg, _, err = t.compile(t.headerEnd, true, s.PacketContext); err != nil {
		return err
	}
	if s.headerProg, s.headerEnd, err = t.compile(anywhere, false, s.EventHeader); err != nil {
		return err
	}
	s.fast = newFastHeader(s)
	s.slots = int(s.contextSlots)
	return nil
}

// checkPacketSlots checks the number of values in the header and the context of packets.
func checkPacketSlots(slots uint32) error {
	if slots > maxPacketSlots {
		return fmt.Errorf("expected at most %d values in the header and the context of a packet, got %d", maxPacketSlots, slots)
	}
	return nil
}

// scopes returns the roots of the scopes of the stream class.
func (s *StreamClass) scopes() scopes {
	return scopes{
		metadata.PacketHeader: s.PacketHeader, metadata.PacketContext: s.PacketContext,
		metadata.EventHeader: s.EventHeader, metadata.EventCommonContext: s.EventCommonContext,
	}
}

// appendRoles appends f and the fields below it that have a role.
func appendRoles(fields []*Field, f *Field) []*Field {
	if f.roles != 0 {
		fields = append(fields, f)
	}
	for _, m := range f.Members {
		fields = appendRoles(fields, m)
	}
	return fields
}

// findClock finds the clock of a stream class. CTF 2 names it. CTF 1.8 maps integers of event header and packet
// context to it. If no integer is mapped, but there are time stamps, it is the trace's only clock, or a clock of
// nanoseconds.
func (t *Trace) findClock(s *StreamClass) error {
	name := s.meta.Clock
	if t.meta.Major == 1 {
		var stamped bool
		for _, root := range []*Field{s.EventHeader, s.PacketContext} {
			if err := clockNames(root, &name, &stamped); err != nil {
				return err
			}
		}
		if name == "" && stamped {
			return t.impliedClock(s)
		}
	}
	if name == "" {
		return nil
	}
	if s.Clock = t.clocks[name]; s.Clock == nil {
		return fmt.Errorf("expected a clock that is declared, got %q", name)
	}
	return nil
}

// clockNames sets name to the clock to which f or fields below it are mapped. It sets stamped if one of them is a
// time stamp.
func clockNames(f *Field, name *string, stamped *bool) error {
	if f.roles&(metadata.RoleClock|metadata.RolePacketEnd) != 0 {
		*stamped = true
	}
	if integer, ok := f.Type.(*metadata.Integer); ok && integer.Clock != "" {
		if *name != "" && *name != integer.Clock {
			return fmt.Errorf("field %q: expected one clock for all times, got %q and %q", f.Path(), *name, integer.Clock)
		}
		*name = integer.Clock
	}
	for _, m := range f.Members {
		if err := clockNames(m, name, stamped); err != nil {
			return err
		}
	}
	return nil
}

// impliedClock sets the clock of a stream class whose time stamps are not mapped to a clock.
func (t *Trace) impliedClock(s *StreamClass) error {
	switch len(t.meta.Clocks) {
	case 0:
		s.Clock = newClock(&metadata.Clock{Name: "nanoseconds", Frequency: nanosecondsPerSecond})
	case 1:
		s.Clock = t.clocks[t.meta.Clocks[0].Name]
	default:
		names := make([]string, 0, len(t.meta.Clocks))
		for _, c := range t.meta.Clocks {
			names = append(names, c.Name)
		}
		return fmt.Errorf("expected times that are mapped to a clock, got times without a clock, and several clocks: %s", strings.Join(names, ", "))
	}
	return nil
}

// addEvent compiles an event class.
func (t *Trace) addEvent(s *StreamClass, m *metadata.Event) error {
	c := &EventClass{ID: m.ID, Name: m.Name, Index: t.events, Stream: s, Meta: m}
	if s.Event(m.ID) != nil {
		return fmt.Errorf("expected one event class of the ID, got a second one")
	}
	var slots uint32
	var err error
	if c.Context, slots, err = t.build(metadata.EventContext, m.Context, s.contextSlots); err != nil {
		return err
	}
	if c.Fields, slots, err = t.build(metadata.EventFields, m.Fields, slots); err != nil {
		return err
	}
	known := s.scopes()
	known[metadata.EventContext], known[metadata.EventFields] = c.Context, c.Fields
	for _, root := range []*Field{c.Context, c.Fields} {
		if err := known.resolve(root); err != nil {
			return err
		}
	}
	c.prog, _, err = t.compile(s.headerEnd, false, s.EventCommonContext, c.Context, c.Fields)
	if err != nil {
		return err
	}
	c.bits = c.prog.bits()
	c.operations = uint64(len(s.headerProg.ops) + len(c.prog.ops))
	s.slots = max(s.slots, int(slots))
	s.addClass(c)
	t.events++
	return nil
}
