// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javaser

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/callbraid/callbraid/internal/mutf8"
)

// Unmarshal reads a complete stream with one object and nothing after it: what
// Marshal writes, and the same with equal strings written more than once, with one
// list in two fields, and with fields in another order. Anything else is an *Error.
//
// Its recursion has a fixed depth, since neither lists nor classes nest, and no
// number of the stream makes it allocate more than the bytes that are there can
// fill. Fields come in the stream's order.
func Unmarshal(stream []byte) (Object, error) {
	r := &reader{b: stream}
	o, err := r.stream()
	if err != nil {
		return Object{}, err
	}
	return o, nil
}

// reader reads b from offset at. handles are what the stream may refer to, by
// number: a classDesc, a string, an ArrayList, or nil for what can't be referred to.
type reader struct {
	b       []byte
	at      int
	handles []any
}

// classDesc is a class as the stream describes it.
type classDesc struct {
	name   string
	uid    int64
	flags  uint8
	fields []Field // without values
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

// classDesc reads a class or a reference to one.
func (r *reader) classDesc() (*classDesc, error) {
	start := r.at
	code, err := r.u8("a class")
	if err != nil {
		return nil, err
	}
	switch code {
	case tcReference:
		return referTo[*classDesc](r, "a class")
	case tcClassDesc:
		return r.newClassDesc()
	default:
		return nil, r.fail(start, "a class", typeCode(code))
	}
}

func (r *reader) newClassDesc() (*classDesc, error) {
	name, err := r.name("a class name")
	if err != nil {
		return nil, err
	}
	uid, err := r.u64("a serialVersionUID")
	if err != nil {
		return nil, err
	}
	class := &classDesc{name: name, uid: int64(uid)}
	r.handles = append(r.handles, class)
	if class.flags, err = r.u8("class flags"); err != nil {
		return nil, err
	}
	if err := r.fieldDescs(class); err != nil {
		return nil, err
	}
	if err := r.expectU8(tcEndBlockData, "no class annotation"); err != nil {
		return nil, err
	}
	if err := r.expectU8(tcNull, "no superclass"); err != nil {
		return nil, err
	}
	return class, nil
}

// fieldDescs reads the number of fields and what they are.
func (r *reader) fieldDescs(class *classDesc) error {
	start := r.at
	count, err := r.u16("a number of fields")
	if err != nil {
		return err
	}
	if count > maxFields {
		return r.fail(start, fmt.Sprintf("at most %d fields", maxFields), fmt.Sprint(count))
	}
	names := map[string]bool{}
	for range count {
		at := r.at
		f, err := r.fieldDesc()
		if err != nil {
			return err
		}
		if names[f.Name] {
			return r.fail(at, "each field once", fmt.Sprintf("field %q again", f.Name))
		}
		names[f.Name] = true
		class.fields = append(class.fields, f)
	}
	return nil
}

func (r *reader) fieldDesc() (Field, error) {
	start := r.at
	code, err := r.u8("a field type")
	if err != nil {
		return Field{}, err
	}
	name, err := r.name("a field name")
	if err != nil {
		return Field{}, err
	}
	if primitiveSizes[code] != 0 {
		return Field{Name: name, Type: string(code)}, nil
	}
	if code != 'L' {
		return Field{}, r.fail(start, "a primitive or class type", fmt.Sprintf("field type 0x%02X", code))
	}
	at := r.at
	v, err := r.value()
	if err != nil {
		return Field{}, err
	}
	descriptor, ok := v.(String)
	if !ok || !isClassType(string(descriptor)) {
		return Field{}, r.fail(at, "the descriptor of a class type", describe(v))
	}
	return Field{Name: name, Type: string(descriptor)}, nil
}

// primitive reads a value of the primitive type.
func (r *reader) primitive(descriptor byte) (Value, error) {
	b, err := r.take(primitiveSizes[descriptor], "a value of type "+string(descriptor))
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

// string reads a string that is written out, and gives it a handle.
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

// arrayList reads a list behind its type code, and gives it a handle.
func (r *reader) arrayList() (Value, error) {
	start := r.at
	class, err := r.classDesc()
	if err != nil {
		return nil, err
	}
	if !class.isArrayList() {
		return nil, r.fail(start, "the class "+arrayListClass+" as Java has it", fmt.Sprintf("class %q", class.name))
	}
	handle := len(r.handles)
	r.handles = append(r.handles, nil) // a list that holds itself is none of strings
	at := r.at
	size, err := r.u32("the size of a list")
	if err != nil {
		return nil, err
	}
	if err := r.capacity(); err != nil {
		return nil, err
	}
	// Each element takes a type code and a 16-bit length at least.
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

// capacity reads the block data in front of a list's elements. Java ignores it too.
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

func (c *classDesc) isArrayList() bool {
	return c.name == arrayListClass && c.uid == arrayListSerialVersionUID &&
		c.flags == scSerializable|scWriteMethod && len(c.fields) == 1 &&
		c.fields[0].Name == arrayListSizeField && c.fields[0].Type == TypeInt
}

// referTo reads a handle and returns what it stands for, which must be a T.
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

// take returns the next n bytes.
func (r *reader) take(n int, what string) ([]byte, error) {
	if n > len(r.b)-r.at {
		return nil, r.fail(r.at, fmt.Sprintf("%s (%d bytes)", what, n), fmt.Sprintf("the end of the stream after %d", len(r.b)-r.at))
	}
	b := r.b[r.at : r.at+n]
	r.at += n
	return b, nil
}

func (r *reader) u8(what string) (uint8, error) {
	b, err := r.take(1, what)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

func (r *reader) u16(what string) (uint16, error) {
	b, err := r.take(2, what)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint16(b), nil
}

func (r *reader) u32(what string) (uint32, error) {
	b, err := r.take(4, what)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(b), nil
}

func (r *reader) u64(what string) (uint64, error) {
	b, err := r.take(8, what)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b), nil
}

// shortString reads a 16-bit length and the string behind it.
func (r *reader) shortString(what string) (string, error) {
	n, err := r.u16("the length of " + what)
	if err != nil {
		return "", err
	}
	return r.text(int(n), what)
}

// name reads a string that is not empty.
func (r *reader) name(what string) (string, error) {
	start := r.at
	s, err := r.shortString(what)
	if err == nil && s == "" {
		return "", r.fail(start, what, "an empty one")
	}
	return s, err
}

func (r *reader) text(n int, what string) (string, error) {
	start := r.at
	b, err := r.take(n, what)
	if err != nil {
		return "", err
	}
	s, err := mutf8.DecodeStrict(b)
	if err != nil {
		return "", r.fail(start, what+" in modified UTF-8", err.Error())
	}
	return s, nil
}

func (r *reader) expectU8(want uint8, what string) error {
	start := r.at
	got, err := r.u8(what)
	if err != nil {
		return err
	}
	if got != want {
		return r.fail(start, fmt.Sprintf("%s (0x%02X)", what, want), fmt.Sprintf("0x%02X", got))
	}
	return nil
}

func (r *reader) expectU16(want uint16, what string) error {
	start := r.at
	got, err := r.u16(what)
	if err != nil {
		return err
	}
	if got != want {
		return r.fail(start, fmt.Sprintf("%s 0x%04X", what, want), fmt.Sprintf("0x%04X", got))
	}
	return nil
}

func (r *reader) fail(offset int, expected, got string) error {
	return &Error{Offset: offset, Expected: expected, Got: got}
}

func typeCode(code byte) string { return fmt.Sprintf("type code 0x%02X", code) }

func describe(v Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case String:
		return fmt.Sprintf("the string %q", v)
	default:
		return "a list"
	}
}
