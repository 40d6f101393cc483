// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharedvalue lets many attributes have one copy of the same text or number.
//
// pdata holds the content of a value in an object of its own, and allocates it for each attribute. It never changes the
// content of a text or a number: a setter makes another one, and so does a copy. So values may share it, also values in
// different goroutines. pdata has no function for that, so this package copies the reference in a value by its place in
// memory. New returns a Sharer that does not share in three cases: the layout of pdata's types is not the known one, pdata
// uses the content of old values again (the feature gate poolingGate), or a setter of this pdata changes a shared content.
package sharedvalue

import (
	"reflect"
	"unsafe"

	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Content is the content of a text or a number. The zero value is none.
type Content struct{ of any }

// IsKnown reports whether there is a content.
func (c Content) IsKnown() bool { return c.of != nil }

// Sharer shares contents of values.
type Sharer struct{ can bool }

// New returns a Sharer.
func New() Sharer {
	return Sharer{isLayoutKnown(reflect.TypeFor[pcommon.Value]()) && !isPooling(featuregate.GlobalRegistry()) && settersReplace(setters)}
}

// setters are the functions of pdata that give a value another content.
var setters = []func(pcommon.Value){
	func(v pcommon.Value) { v.SetStr("changed") },
	func(v pcommon.Value) { v.SetInt(8) },
	func(v pcommon.Value) { v.SetDouble(8) },
	func(v pcommon.Value) { v.SetBool(true) },
	func(v pcommon.Value) { v.SetEmptyBytes() },
	func(v pcommon.Value) { v.SetEmptyMap() },
	func(v pcommon.Value) { v.SetEmptySlice() },
	func(v pcommon.Value) { pcommon.NewValueStr("changed").CopyTo(v) },
	func(v pcommon.Value) { pcommon.NewValueInt(8).CopyTo(v) },
	func(v pcommon.Value) { pcommon.NewValueStr("changed").MoveTo(v) },
}

// settersReplace reports whether each setter leaves another value with the same content unchanged. A later pdata can have
// setters that write into the content, and programs can be built with it.
func settersReplace(setters []func(pcommon.Value)) bool {
	for _, set := range setters {
		text, number := pcommon.NewValueStr("text"), pcommon.NewValueInt(7)
		for _, kept := range []pcommon.Value{text, number} {
			changed, want := pcommon.NewValueEmpty(), pcommon.NewValueEmpty()
			kept.CopyTo(want)
			Content{*reference(kept)}.Set(changed)
			set(changed)
			if !kept.Equal(want) {
				return false
			}
		}
	}
	return true
}

// Content returns the content of a value, which has to be a text or a number. It returns none if it cannot be shared.
func (s Sharer) Content(v pcommon.Value) Content {
	if !s.can {
		return Content{}
	}
	return Content{*reference(v)}
}

// Set sets a value to a known content.
func (c Content) Set(v pcommon.Value) { *reference(v) = c.of }

// reference returns the reference to the content of a value: the only field of the struct to which the first field of a
// pcommon.Value points.
func reference(v pcommon.Value) *any { return *(**any)(unsafe.Pointer(&v)) }

// isLayoutKnown reports whether a type has the layout that reference expects.
func isLayoutKnown(value reflect.Type) bool {
	if value.Kind() != reflect.Struct || value.NumField() == 0 || value.Field(0).Type.Kind() != reflect.Pointer {
		return false
	}
	held := value.Field(0).Type.Elem()
	return held.Kind() == reflect.Struct && held.NumField() == 1 && held.Field(0).Type == reflect.TypeFor[any]()
}

// poolingGate is the feature gate with which pdata uses the content of old values again.
const poolingGate = "pdata.useProtoPooling"

// isPooling reports whether the gate is on.
func isPooling(gates *featuregate.Registry) (on bool) {
	gates.VisitAll(func(g *featuregate.Gate) { on = on || g.ID() == poolingGate && g.IsEnabled() })
	return on
}
