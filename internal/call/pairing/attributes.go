// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

const (
	// maxAttributes bounds the attributes of a frame. More are dropped and
	// counted.
	maxAttributes = 128
	// keptAttributes is for how many waiting events a map keeps its places when
	// it is empty: maps never shrink.
	keptAttributes = 256
)

// attribute is an attribute of a waiting event or of an open frame.
type attribute struct{ key, value *sharedValue }

// sharedValue is a value of a batch, with memory of its own: a batch's strings
// share theirs, and an open frame may keep one of them for hours. A value that a
// thousand attributes have is one, and counts once.
type sharedValue struct {
	value callevent.Value
	// users is how many attributes of waiting events and of open frames have it as
	// their key or value.
	users int
}

// ownValues makes shared values of those of b.
func (o *Output) ownValues(b *callevent.Batch) {
	clear(o.values)
	o.values = o.values[:0]
	if len(b.Attributes) == 0 {
		return
	}
	for _, v := range b.Values {
		o.values = append(o.values, &sharedValue{value: v.Clone()})
	}
}

// ownAttributes gives the attributes of the event that is the first in rest,
// and the rest after them.
func (o *Output) ownAttributes(rest []callevent.Attribute) (own []attribute, left []callevent.Attribute) {
	n := 1
	for n < len(rest) && rest[n].Event == rest[0].Event {
		n++
	}
	own = make([]attribute, n)
	for i := range own {
		own[i] = attribute{key: o.values[rest[i].Key], value: o.values[rest[i].Value]}
	}
	return own, rest[n:]
}

// tell puts attributes to those of finished calls.
func (o *Output) tell(attributes []attribute) {
	for _, a := range attributes {
		o.Attributes = append(o.Attributes, Attribute{Key: a.key.value.Str(), Value: a.value.value})
	}
}

// keepAttributes keeps the attributes of a waiting event.
func (s *Stream) keepAttributes(sequence uint64, attributes []attribute) {
	s.attributes[sequence] = attributes
	s.mostAttributes = max(s.mostAttributes, len(s.attributes))
	s.attributeBytes += len(attributes) * attributeBytes
	s.charge(attributes)
}

// takeAttributes takes the attributes of an event that no longer waits.
func (s *Stream) takeAttributes(sequence uint64) []attribute {
	attributes := s.attributes[sequence]
	delete(s.attributes, sequence)
	s.attributeBytes -= len(attributes) * attributeBytes
	s.release(attributes)
	if len(s.attributes) == 0 && s.mostAttributes > keptAttributes {
		s.attributes, s.mostAttributes = map[uint64][]attribute{}, 0
	}
	return attributes
}

// giveAttributes gives attributes to the top frame of l.
func (s *Stream) giveAttributes(l *lane, f *frame, attributes []attribute) {
	if room := maxAttributes - int(f.attributes); len(attributes) > room {
		s.out.Counters.DroppedAttributes += uint64(len(attributes) - room)
		attributes = attributes[:room]
	}
	s.stackBytes -= l.bytes()
	l.attributes = append(l.attributes, attributes...)
	s.stackBytes += l.bytes()
	f.attributes += uint32(len(attributes))
	s.charge(attributes)
}

// sharedBytes is about what a shared value takes beside its text.
const sharedBytes = int(unsafe.Sizeof(sharedValue{})) + 16

// charge counts what attributes take that are kept from now on.
func (s *Stream) charge(attributes []attribute) {
	for _, a := range attributes {
		s.attributeBytes += a.key.use() + a.value.use()
	}
}

// release counts that attributes are not kept any more.
func (s *Stream) release(attributes []attribute) {
	for _, a := range attributes {
		s.attributeBytes -= a.key.leave() + a.value.leave()
	}
}

// use counts a user, and says how much more is held for it.
func (v *sharedValue) use() (more int) {
	v.users++
	if v.users > 1 {
		return 0
	}
	return sharedBytes + len(v.value.Str())
}

// leave is the opposite of use.
func (v *sharedValue) leave() (less int) {
	v.users--
	if v.users > 0 {
		return 0
	}
	return sharedBytes + len(v.value.Str())
}
