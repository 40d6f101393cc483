// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// originOf returns an origin of a resource and a scope.
func originOf(set func(r pcommon.Resource, s pcommon.InstrumentationScope)) *Origin {
	r, s := pcommon.NewResource(), pcommon.NewInstrumentationScope()
	set(r, s)
	return New(r, "r", s, "s")
}

func TestTheOrderOfAttributesMakesNoDifference(t *testing.T) {
	one := originOf(func(r pcommon.Resource, s pcommon.InstrumentationScope) {
		r.Attributes().PutStr("a", "1")
		r.Attributes().PutEmptySlice("b").AppendEmpty().SetInt(3)
		m := r.Attributes().PutEmptyMap("c")
		m.PutBool("x", true)
		m.PutDouble("y", 0.5)
		s.Attributes().PutEmptyBytes("d").FromRaw([]byte("z"))
		s.Attributes().PutEmpty("e")
	})
	other := originOf(func(r pcommon.Resource, s pcommon.InstrumentationScope) {
		m := r.Attributes().PutEmptyMap("c")
		m.PutDouble("y", 0.5)
		m.PutBool("x", true)
		r.Attributes().PutEmptySlice("b").AppendEmpty().SetInt(3)
		r.Attributes().PutStr("a", "1")
		s.Attributes().PutEmpty("e")
		s.Attributes().PutEmptyBytes("d").FromRaw([]byte("z"))
	})
	assert.Equal(t, one.Key, other.Key)
	assert.Equal(t, one.Bytes, other.Bytes)
}

func TestDifferentOriginsHaveDifferentKeys(t *testing.T) {
	resource := func(set func(m pcommon.Map)) *Origin {
		return originOf(func(r pcommon.Resource, _ pcommon.InstrumentationScope) { set(r.Attributes()) })
	}
	seen := map[Key]string{}
	for name, o := range map[string]*Origin{
		"unnamed":            Unnamed(),
		"nothing":            resource(func(pcommon.Map) {}),
		"text":               resource(func(m pcommon.Map) { m.PutStr("a", "1") }),
		"number":             resource(func(m pcommon.Map) { m.PutInt("a", 1) }),
		"double":             resource(func(m pcommon.Map) { m.PutDouble("a", 1) }),
		"true":               resource(func(m pcommon.Map) { m.PutBool("a", true) }),
		"false":              resource(func(m pcommon.Map) { m.PutBool("a", false) }),
		"empty":              resource(func(m pcommon.Map) { m.PutEmpty("a") }),
		"bytes":              resource(func(m pcommon.Map) { m.PutEmptyBytes("a").FromRaw([]byte("1")) }),
		"empty list":         resource(func(m pcommon.Map) { m.PutEmptySlice("a") }),
		"list":               resource(func(m pcommon.Map) { m.PutEmptySlice("a").AppendEmpty().SetStr("1") }),
		"map":                resource(func(m pcommon.Map) { m.PutEmptyMap("a").PutStr("1", "") }),
		"key and value":      resource(func(m pcommon.Map) { m.PutStr("a1", "") }),
		"two":                resource(func(m pcommon.Map) { m.PutStr("a", "1"); m.PutStr("b", "") }),
		"scope's attribute":  originOf(func(_ pcommon.Resource, s pcommon.InstrumentationScope) { s.Attributes().PutStr("a", "1") }),
		"name of the scope":  originOf(func(_ pcommon.Resource, s pcommon.InstrumentationScope) { s.SetName("a") }),
		"version":            originOf(func(_ pcommon.Resource, s pcommon.InstrumentationScope) { s.SetVersion("a") }),
		"schema URL":         New(pcommon.NewResource(), "a", pcommon.NewInstrumentationScope(), "s"),
		"scope's schema URL": New(pcommon.NewResource(), "r", pcommon.NewInstrumentationScope(), "a"),
	} {
		assert.Empty(t, seen[o.Key], name)
		seen[o.Key] = name
	}
}

func TestAnOriginDoesNotChangeWithItsResource(t *testing.T) {
	r := pcommon.NewResource()
	r.Attributes().PutStr("a", "1")
	o := New(r, "", pcommon.NewInstrumentationScope(), "")
	r.Attributes().PutStr("a", "2")
	assert.Equal(t, map[string]any{"a": "1"}, o.Resource.Attributes().AsRaw())
}
