// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "github.com/callbraid/callbraid/internal/callevent"

const (
	// maxAttributes bounds the attributes of a frame. More are dropped and
	// counted.
	maxAttributes = 128
	// keptAttributes is for how many waiting events a map keeps its places when
	// it is empty: maps never shrink.
	keptAttributes = 256
)

// ownValues gives the values of b memory of their own, each once: a batch's
// strings share memory, and an open frame may keep one of them for hours. A
// value that a thousand attributes have stays one.
func (o *Output) ownValues(b *callevent.Batch) {
	o.values = o.values[:0]
	if len(b.Attributes) == 0 {
		return
	}
	for _, v := range b.Values {
		o.values = append(o.values, v.Clone())
	}
}

// ownAttributes gives the attributes of the event that is the first in rest,
// and the rest after them.
func (o *Output) ownAttributes(rest []callevent.Attribute) (own []Attribute, left []callevent.Attribute) {
	n := 1
	for n < len(rest) && rest[n].Event == rest[0].Event {
		n++
	}
	own = make([]Attribute, n)
	for i := range own {
		own[i] = Attribute{Key: o.values[rest[i].Key].Str(), Value: o.values[rest[i].Value]}
	}
	return own, rest[n:]
}

// keepAttributes keeps the attributes of a waiting event.
func (s *Stream) keepAttributes(sequence uint64, attributes []Attribute) {
	s.attributes[sequence] = attributes
	s.mostAttributes = max(s.mostAttributes, len(s.attributes))
	s.attributeBytes += attributesSize(attributes)
}

// takeAttributes takes the attributes of an event that no longer waits.
func (s *Stream) takeAttributes(sequence uint64) []Attribute {
	attributes := s.attributes[sequence]
	delete(s.attributes, sequence)
	s.attributeBytes -= attributesSize(attributes)
	if len(s.attributes) == 0 && s.mostAttributes > keptAttributes {
		s.attributes, s.mostAttributes = map[uint64][]Attribute{}, 0
	}
	return attributes
}

// giveAttributes gives attributes to the top frame of l.
func (s *Stream) giveAttributes(l *lane, f *frame, attributes []Attribute) {
	if room := maxAttributes - int(f.attributes); len(attributes) > room {
		s.out.Counters.DroppedAttributes += uint64(len(attributes) - room)
		attributes = attributes[:room]
	}
	s.stackBytes -= l.bytes()
	l.attributes = append(l.attributes, attributes...)
	s.stackBytes += l.bytes()
	f.attributes += uint32(len(attributes))
	s.attributeBytes += attributesSize(attributes)
}

// attributesSize is about what attributes take beside their place.
func attributesSize(attributes []Attribute) (size int) {
	const overhead = 64
	for _, a := range attributes {
		size += len(a.Key) + len(a.Value.Str()) + overhead
	}
	return size
}
