// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javaser

import (
	"fmt"
)

// classDesc is a class description of the stream.
type classDesc struct {
	name   string
	uid    int64
	flags  uint8
	fields []Field // without values
}

func (c *classDesc) isArrayList() bool {
	return c.name == arrayListClass && c.uid == arrayListSerialVersionUID &&
		c.flags == scSerializable|scWriteMethod && len(c.fields) == 1 &&
		c.fields[0].Name == arrayListSizeField && c.fields[0].Type == TypeInt
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

// fieldDescs reads the number of fields and their descriptions.
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
