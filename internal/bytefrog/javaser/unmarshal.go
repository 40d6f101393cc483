// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javaser

import (
	"fmt"
)

// Unmarshal reads a complete stream of one object, in the form that Marshal writes. It also accepts equal strings that
// are written more than once, two fields with the same list, and another order of fields. All other content is an
// *Error.
//
// The depth of its recursion is fixed, because neither lists nor classes nest. It allocates no more than the available
// bytes can fill, even if the stream contains large numbers. Fields are returned in the order of the stream.
func Unmarshal(stream []byte) (Object, error) {
	r := &reader{b: stream}
	o, err := r.stream()
	if err != nil {
		return Object{}, err
	}
	return o, nil
}

func (r *reader) stream() (Object, error) {
	if err := r.expectU16(streamMagic, "stream magic"); err != nil {
		return Object{}, err
	}
	if err := r.expectU16(streamVersion, "stream version"); err != nil {
		return Object{}, err
	}
	if err := r.expectU8(tcObject, "an object"); err != nil {
		return Object{}, err
	}
	o, err := r.object()
	if err != nil {
		return Object{}, err
	}
	if r.at != len(r.b) {
		return Object{}, r.fail(r.at, "the end of the stream", fmt.Sprintf("%d more bytes", len(r.b)-r.at))
	}
	return o, nil
}

// object reads the one object, behind its type code.
func (r *reader) object() (Object, error) {
	start := r.at
	class, err := r.classDesc()
	if err != nil {
		return Object{}, err
	}
	if class.flags != scSerializable || class.name == arrayListClass {
		return Object{}, r.fail(start, "a Serializable class without data of its own",
			fmt.Sprintf("class %q with flags 0x%02X", class.name, class.flags))
	}
	r.handles = append(r.handles, nil)
	o := Object{Class: class.name, SerialVersionUID: class.uid, Fields: class.fields}
	for i := range o.Fields {
		f := &o.Fields[i]
		if isPrimitive(f.Type) {
			f.Value, err = r.primitive(f.Type[0])
		} else {
			f.Value, err = r.value()
		}
		if err != nil {
			return Object{}, err
		}
	}
	return o, nil
}

// referTo reads a handle and returns its element, which must be a T.
func referTo[T any](r *reader, what string) (T, error) {
	var none T
	start := r.at
	h, err := r.u32("a handle")
	if err != nil {
		return none, err
	}
	if h < baseWireHandle || h-baseWireHandle >= uint32(len(r.handles)) {
		return none, r.fail(start, fmt.Sprintf("one of the %d handles from 0x%X", len(r.handles), baseWireHandle), fmt.Sprintf("0x%X", h))
	}
	v, ok := r.handles[h-baseWireHandle].(T)
	if !ok {
		return none, r.fail(start, "the handle of "+what, fmt.Sprintf("0x%X, which is something else", h))
	}
	return v, nil
}
