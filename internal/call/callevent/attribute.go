// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import "encoding/binary"

// Attribute is an optional attribute of one event of an unpacked batch.
type Attribute struct {
	// Event is the index of the event in the batch.
	Event uint32
	// Key and Value are indexes into the batch's value table; the key is a string.
	Key, Value uint32
}

// AddWith is Add for an event with an optional attribute: it adds both, or neither.
func (p *Packer) AddWith(e *Event, key string, value Value) bool {
	k, v, ok := p.attribute(key, value, eventSize)
	if !ok || !p.Add(e) {
		return false
	}
	p.addAttribute(k, v)
	return true
}

// Attribute adds an optional attribute to the latest event. It reports false, and adds nothing, if
// there is no event or the attribute doesn't fit.
func (p *Packer) Attribute(key string, value Value) bool {
	if p.closed || p.Len() == 0 {
		return false
	}
	k, v, ok := p.attribute(key, value, 0)
	if ok {
		p.addAttribute(k, v)
	}
	return ok
}

// attribute enters key and value into the table of values. It reports false if there is no room for
// the attribute and for the given number of further bytes.
func (p *Packer) attribute(key string, value Value, more int) (k, v uint16, ok bool) {
	if value.kind == 0 || value.kind >= valueTypeEnd {
		return 0, 0, false
	}
	if k, ok = p.value(StringValue(key)); !ok {
		return 0, 0, false
	}
	v, ok = p.value(value)
	return k, v, ok && p.size()+attributeSize+more <= p.maxBytes
}

// addAttribute adds an attribute, for which there is room, to the latest event.
func (p *Packer) addAttribute(k, v uint16) {
	p.attributes = binary.LittleEndian.AppendUint32(p.attributes, uint32(p.Len()-1))
	p.attributes = binary.LittleEndian.AppendUint32(p.attributes, uint32(k))
	p.attributes = binary.LittleEndian.AppendUint32(p.attributes, uint32(v))
	p.narrow()
}
