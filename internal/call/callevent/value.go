// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"math"
	"strings"
)

// ValueType is the type of a Value.
type ValueType uint32

// The types of values.
const (
	ValueString ValueType = 1 + iota
	ValueInt
	ValueDouble
	ValueBool

	valueTypeEnd
)

// Value is the value of an optional attribute of an event. The zero Value is
// not valid.
type Value struct {
	kind ValueType
	bits uint64
	text string
}

// StringValue is a value of type string.
func StringValue(s string) Value { return Value{kind: ValueString, text: s} }

// IntValue is a value of type int.
func IntValue(i int64) Value { return Value{kind: ValueInt, bits: uint64(i)} }

// DoubleValue is a value of type double.
func DoubleValue(f float64) Value { return Value{kind: ValueDouble, bits: math.Float64bits(f)} }

// BoolValue is a value of type bool.
func BoolValue(b bool) Value {
	v := Value{kind: ValueBool}
	if b {
		v.bits = 1
	}
	return v
}

// Clone is v with memory of its own.
func (v Value) Clone() Value {
	v.text = strings.Clone(v.text)
	return v
}

// Type is the type of v. Only the method of that type has its value.
func (v Value) Type() ValueType { return v.kind }

// Str is the value of type string.
func (v Value) Str() string { return v.text }

// Int is the value of type int.
func (v Value) Int() int64 { return int64(v.bits) }

// Double is the value of type double.
func (v Value) Double() float64 { return math.Float64frombits(v.bits) }

// Bool is the value of type bool.
func (v Value) Bool() bool { return v.bits != 0 }
