// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javaser

import (
	"encoding/binary"
	"fmt"
	"math"
)

// primitive reads a value of the primitive type.
func (r *reader) primitive(descriptor byte) (Value, error) {
	b, err := r.next(primitiveSizes[descriptor], "a value of type "+string(descriptor))
	if err != nil {
		return nil, err
	}
	switch descriptor {
	case 'B':
		return Byte(b[0]), nil
	case 'C':
		return Char(binary.BigEndian.Uint16(b)), nil
	case 'D':
		return Double(math.Float64frombits(binary.BigEndian.Uint64(b))), nil
	case 'F':
		return Float(math.Float32frombits(binary.BigEndian.Uint32(b))), nil
	case 'I':
		return Int(binary.BigEndian.Uint32(b)), nil
	case 'J':
		return Long(binary.BigEndian.Uint64(b)), nil
	case 'S':
		return Short(binary.BigEndian.Uint16(b)), nil
	default:
		return Boolean(b[0] != 0), nil
	}
}

// value reads null, a string, a list, or a reference to one of these.
func (r *reader) value() (Value, error) {
	start := r.at
	code, err := r.u8("a value")
	if err != nil {
		return nil, err
	}
	switch code {
	case tcNull:
		return nil, nil
	case tcReference:
		return referTo[Value](r, "a string or list")
	case tcString, tcLongString:
		s, err := r.string(code)
		if err != nil {
			return nil, err
		}
		return s, nil
	case tcObject:
		return r.arrayList()
	default:
		return nil, r.fail(start, "null, a string, a list, or a reference to one", typeCode(code))
	}
}

// string reads a string after its type code, and assigns a handle to it.
func (r *reader) string(code byte) (String, error) {
	const what = "a string"
	var text string
	var err error
	if code == tcLongString {
		var length uint64
		start := r.at
		if length, err = r.u64("the length of a string"); err != nil {
			return "", err
		}
		if length > uint64(len(r.b)-r.at) {
			return "", r.fail(start, fmt.Sprintf("a length of at most the %d bytes that follow", len(r.b)-r.at), fmt.Sprint(length))
		}
		text, err = r.text(int(length), what)
	} else {
		text, err = r.shortString(what)
	}
	if err != nil {
		return "", err
	}
	r.handles = append(r.handles, Value(String(text)))
	return String(text), nil
}

// arrayList reads a list after its type code, and assigns a handle to it.
func (r *reader) arrayList() (Value, error) {
	start := r.at
	class, err := r.classDesc()
	if err != nil {
		return nil, err
	}
	if !class.isArrayList() {
		return nil, r.fail(start, "the class "+arrayListClass+" as Java declares it", fmt.Sprintf("class %q", class.name))
	}
	handle := len(r.handles)
	r.handles = append(r.handles, nil) // a reference to this list inside itself is not a string
	at := r.at
	size, err := r.u32("the size of a list")
	if err != nil {
		return nil, err
	}
	if err := r.capacity(); err != nil {
		return nil, err
	}
	// Each element has at least a type code and a 16-bit length.
	const minElement = 3
	if uint64(size)*minElement > uint64(len(r.b)-r.at) {
		return nil, r.fail(at, fmt.Sprintf("a size that the %d bytes that follow can hold", len(r.b)-r.at), fmt.Sprint(int32(size)))
	}
	list := make(ArrayList, 0, size)
	for range size {
		at := r.at
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		s, ok := v.(String)
		if !ok {
			return nil, r.fail(at, "a string as element of a list", describe(v))
		}
		list = append(list, string(s))
	}
	if err := r.expectU8(tcEndBlockData, "the end of a list"); err != nil {
		return nil, err
	}
	r.handles[handle] = Value(list)
	return list, nil
}

// capacity reads the block data before a list's elements. Java ignores it too.
func (r *reader) capacity() error {
	if err := r.expectU8(tcBlockData, "the capacity of a list"); err != nil {
		return err
	}
	if err := r.expectU8(arrayListBlockSize, "four bytes of capacity"); err != nil {
		return err
	}
	_, err := r.u32("the capacity of a list")
	return err
}
