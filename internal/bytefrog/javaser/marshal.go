// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javaser

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/mutf8"
)

// Marshal writes o as a complete stream: a header and one object. It fails if the type and the value of a field do not
// match, if two fields have the same name, or if a text that the stream limits to 65535 bytes (names and types) is
// longer.
func Marshal(o Object) ([]byte, error) {
	if err := check(o); err != nil {
		return nil, fmt.Errorf("class %q: %w", o.Class, err)
	}
	w := &writer{
		b:       binary.BigEndian.AppendUint16(nil, streamMagic),
		classes: map[string]uint32{},
		types:   map[string]uint32{},
		strings: map[string]uint32{},
	}
	w.u16(streamVersion)
	w.object(o)
	return w.b, nil
}

// writer appends to b and stores the handles of written elements: the stream has each class and each string once, and
// refers to it afterwards. The type and the value of a field are two Strings in Java even if their texts are equal.
type writer struct {
	b       []byte
	next    uint32 // the number of assigned handles
	classes map[string]uint32
	types   map[string]uint32
	strings map[string]uint32
}

func (w *writer) u8(v uint8)   { w.b = append(w.b, v) }
func (w *writer) u16(v uint16) { w.b = binary.BigEndian.AppendUint16(w.b, v) }
func (w *writer) u32(v uint32) { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *writer) u64(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

// handle assigns the next handle to the current element.
func (w *writer) handle() uint32 {
	h := w.next
	w.next++
	return h
}

func (w *writer) reference(handle uint32) {
	w.u8(tcReference)
	w.u32(baseWireHandle + handle)
}

func (w *writer) object(o Object) {
	fields := sortFields(o.Fields)
	w.u8(tcObject)
	w.classDesc(o.Class, o.SerialVersionUID, scSerializable, fields)
	w.handle()
	for _, f := range fields {
		if f.Value == nil {
			w.u8(tcNull)
			continue
		}
		f.Value.appendTo(w)
	}
}

// classDesc writes a class, or a reference to it. Its handle is lower than the handles of the field types.
func (w *writer) classDesc(name string, uid int64, flags uint8, fields []Field) {
	if h, ok := w.classes[name]; ok {
		w.reference(h)
		return
	}
	w.u8(tcClassDesc)
	w.b = mutf8.AppendShort(w.b, name)
	w.u64(uint64(uid))
	w.classes[name] = w.handle()
	w.u8(flags)
	w.u16(uint16(len(fields)))
	for _, f := range fields {
		w.u8(f.Type[0])
		w.b = mutf8.AppendShort(w.b, f.Name)
		if !isPrimitive(f.Type) {
			w.string(f.Type, w.types)
		}
	}
	w.u8(tcEndBlockData) // no annotations
	w.u8(tcNull)         // no superclass
}

// string writes s, or a reference to it if it is in written.
func (w *writer) string(s string, written map[string]uint32) {
	if h, ok := written[s]; ok {
		w.reference(h)
		return
	}
	written[s] = w.handle()
	if n := mutf8.Len(s); n > mutf8.MaxShort {
		w.u8(tcLongString)
		w.u64(uint64(n))
		w.b = mutf8.Append(w.b, s)
		return
	}
	w.u8(tcString)
	w.b = mutf8.AppendShort(w.b, s)
}

func (v Byte) appendTo(w *writer)   { w.u8(uint8(v)) }
func (v Char) appendTo(w *writer)   { w.u16(uint16(v)) }
func (v Double) appendTo(w *writer) { w.u64(math.Float64bits(float64(v))) }
func (v Float) appendTo(w *writer)  { w.u32(math.Float32bits(float32(v))) }
func (v Int) appendTo(w *writer)    { w.u32(uint32(v)) }
func (v Long) appendTo(w *writer)   { w.u64(uint64(v)) }
func (v Short) appendTo(w *writer)  { w.u16(uint16(v)) }
func (v String) appendTo(w *writer) { w.string(string(v), w.strings) }

func (v Boolean) appendTo(w *writer) {
	if v {
		w.u8(1)
		return
	}
	w.u8(0)
}

func (v ArrayList) appendTo(w *writer) {
	w.u8(tcObject)
	w.classDesc(arrayListClass, arrayListSerialVersionUID, scSerializable|scWriteMethod,
		[]Field{{Name: arrayListSizeField, Type: TypeInt}})
	w.handle()
	w.u32(uint32(len(v)))
	// ArrayList once wrote its capacity here, and now writes its size.
	w.u8(tcBlockData)
	w.u8(arrayListBlockSize)
	w.u32(uint32(len(v)))
	for _, s := range v {
		w.string(s, w.strings)
	}
	w.u8(tcEndBlockData)
}

// sortFields returns the fields in the order of the stream: primitives first, each
// group by name.
func sortFields(fields []Field) []Field {
	sorted := slices.Clone(fields)
	slices.SortFunc(sorted, func(a, b Field) int {
		if p, q := isPrimitive(a.Type), isPrimitive(b.Type); p != q {
			if p {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return sorted
}

func isPrimitive(descriptor string) bool {
	return len(descriptor) == 1 && primitiveSizes[descriptor[0]] != 0
}

// isClassType reports whether the descriptor is one of a class or interface.
func isClassType(descriptor string) bool {
	return len(descriptor) > 2 && descriptor[0] == 'L' && descriptor[len(descriptor)-1] == ';'
}

func check(o Object) error {
	if err := checkText("class name", o.Class); err != nil {
		return err
	}
	if o.Class == arrayListClass {
		return fmt.Errorf("expected another class than %s: lists are written only as values", arrayListClass)
	}
	if len(o.Fields) > maxFields {
		return fmt.Errorf("expected at most %d fields, got %d", maxFields, len(o.Fields))
	}
	names := map[string]bool{}
	for _, f := range o.Fields {
		if names[f.Name] {
			return fmt.Errorf("field %q: expected each name once, got it again", f.Name)
		}
		names[f.Name] = true
		if err := checkField(f); err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
	}
	return nil
}

func checkField(f Field) error {
	if err := checkText("name", f.Name); err != nil {
		return err
	}
	if err := checkText("type", f.Type); err != nil {
		return err
	}
	if list, ok := f.Value.(ArrayList); ok && len(list) > math.MaxInt32 {
		return fmt.Errorf("expected at most %d elements, got %d", math.MaxInt32, len(list))
	}
	if !isPrimitive(f.Type) && !isClassType(f.Type) {
		return fmt.Errorf("expected the descriptor of a primitive or class type, got %q", f.Type)
	}
	primitive := primitiveType(f.Value)
	if primitive != "" && primitive != f.Type || primitive == "" && !isClassType(f.Type) {
		return fmt.Errorf("expected a value of type %q, got %T", f.Type, f.Value)
	}
	return nil
}

// checkText refuses texts that would be changed by writing.
func checkText(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("expected a %s, got none", what)
	case !utf8.ValidString(s):
		return fmt.Errorf("expected a %s in UTF-8, got %q", what, s)
	case mutf8.Len(s) > mutf8.MaxShort:
		return fmt.Errorf("expected a %s of at most %d bytes, got %d", what, mutf8.MaxShort, mutf8.Len(s))
	default:
		return nil
	}
}

// primitiveType returns the type of a primitive value, or "" for other values.
func primitiveType(v Value) string {
	switch v.(type) {
	case Byte:
		return TypeByte
	case Char:
		return TypeChar
	case Double:
		return TypeDouble
	case Float:
		return TypeFloat
	case Int:
		return TypeInt
	case Long:
		return TypeLong
	case Short:
		return TypeShort
	case Boolean:
		return TypeBoolean
	default:
		return ""
	}
}
