// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package origin has the resource and the scope of call streams, and decides which streams have
// the same. It knows no sums.
package origin

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Origin is the resource and the scope of call streams. It does not change.
type Origin struct {
	Resource          pcommon.Resource
	ResourceSchemaURL string
	Scope             pcommon.InstrumentationScope
	ScopeSchemaURL    string
	// Key is the same for equal origins.
	Key Key
	// Bytes is about the memory of the origin.
	Bytes int
}

// Key is a hash of a resource and a scope. The order of attributes makes no difference.
type Key [sha256.Size]byte

// New copies a resource and a scope. Code that receives attributes has checked how deep they are
// nested (package nesting), because New recurses once for each level.
func New(resource pcommon.Resource, resourceSchemaURL string, scope pcommon.InstrumentationScope, scopeSchemaURL string) *Origin {
	o := &Origin{
		Resource: pcommon.NewResource(), ResourceSchemaURL: resourceSchemaURL,
		Scope: pcommon.NewInstrumentationScope(), ScopeSchemaURL: scopeSchemaURL,
	}
	resource.CopyTo(o.Resource)
	scope.CopyTo(o.Scope)
	var e encoding
	e.attributes(o.Resource.Attributes())
	e.text(resourceSchemaURL)
	e.text(scope.Name())
	e.text(scope.Version())
	e.attributes(o.Scope.Attributes())
	e.text(scopeSchemaURL)
	o.Key = sha256.Sum256(e.bytes)
	o.Bytes = originBytes + len(e.bytes) + valueBytes*e.values
	return o
}

// Unnamed returns an origin without attributes, for streams whose own one has no room. Its key is
// that of no other.
func Unnamed() *Origin {
	return &Origin{Resource: pcommon.NewResource(), Scope: pcommon.NewInstrumentationScope(), Bytes: originBytes}
}

// Approximate memory: of an origin, and of an attribute or a value of a list beside its texts.
const (
	originBytes = 400
	valueBytes  = 56
)

// encoding writes values so that different ones have different bytes: each text has its length
// before it, and each value its type.
type encoding struct {
	bytes []byte
	// values counts all values.
	values int
}

func (e *encoding) number(n uint64) { e.bytes = binary.AppendUvarint(e.bytes, n) }

func (e *encoding) text(s string) {
	e.number(uint64(len(s)))
	e.bytes = append(e.bytes, s...)
}

// attributes writes attributes in the order of their bytes.
func (e *encoding) attributes(m pcommon.Map) {
	e.number(uint64(m.Len()))
	all := make([][]byte, 0, m.Len())
	for key, value := range m.All() {
		var one encoding
		one.text(key)
		one.value(value)
		all = append(all, one.bytes)
		e.values += one.values
	}
	slices.SortFunc(all, bytes.Compare)
	for _, one := range all {
		e.bytes = append(e.bytes, one...)
	}
}

func (e *encoding) value(v pcommon.Value) {
	e.values++
	e.number(uint64(v.Type()))
	switch v.Type() {
	case pcommon.ValueTypeStr:
		e.text(v.Str())
	case pcommon.ValueTypeBool:
		if v.Bool() {
			e.number(1)
		} else {
			e.number(0)
		}
	case pcommon.ValueTypeInt:
		e.number(uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		e.number(math.Float64bits(v.Double()))
	case pcommon.ValueTypeBytes:
		e.text(string(v.Bytes().AsRaw()))
	case pcommon.ValueTypeMap:
		e.attributes(v.Map())
	case pcommon.ValueTypeSlice:
		e.number(uint64(v.Slice().Len()))
		for _, element := range v.Slice().All() {
			e.value(element)
		}
	case pcommon.ValueTypeEmpty:
	}
}
