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

// KeyValue is an optional attribute of an event that a Packer adds.
type KeyValue struct {
	Key   string
	Value Value
}

// AddWith is Add for an event with at most MaxEventAttributes optional attributes: it adds all, or
// nothing. An empty batch has room for them if their texts have at most MaxNameBytes together.
func (p *Packer) AddWith(e *Event, attributes []KeyValue) bool {
	var indexes [MaxEventAttributes]struct{ k, v uint16 }
	for i, a := range attributes {
		ok := false
		if indexes[i].k, indexes[i].v, ok = p.attribute(a.Key, a.Value, eventSize+i*attributeSize); !ok {
			return false
		}
	}
	if !p.Add(e) {
		return false
	}
	for i := range attributes {
		p.addAttribute(indexes[i].k, indexes[i].v)
	}
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
