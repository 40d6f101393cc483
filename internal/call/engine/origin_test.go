// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// around returns a resource and a scope with all kinds of contents, and a span in them.
func around() carrier {
	rs := ptrace.NewTraces().ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl("resource schema")
	attributes := rs.Resource().Attributes()
	attributes.PutStr("service.name", "shop")
	attributes.PutInt("process.pid", 17)
	attributes.PutDouble("share", 0.5)
	attributes.PutBool("true", true)
	attributes.PutEmptyBytes("bytes").FromRaw([]byte{1, 2})
	attributes.PutEmpty("empty")
	arguments := attributes.PutEmptySlice("process.command_args")
	arguments.AppendEmpty().SetStr("java")
	arguments.AppendEmpty().SetStr("Shop")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.SetSchemaUrl("scope schema")
	ss.Scope().SetName("receiver")
	ss.Scope().SetVersion("1.2.3")
	ss.Scope().Attributes().PutStr("tracer", "demo")
	return carrier{rs, ss, ss.Spans().AppendEmpty()}
}

func TestAnOriginStaysWithoutAChange(t *testing.T) {
	b := &callevent.Batch{Stream: streamID(1), TextKey: "demo.text"}
	assert.True(t, newOrigin(around(), b, allAttributes).is(around(), b))
}

func TestEveryChangeMakesANewOrigin(t *testing.T) {
	attributes := func(c carrier) pcommon.Map { return c.resource.Resource().Attributes() }
	value := func(c carrier, key string) pcommon.Value {
		v, ok := attributes(c).Get(key)
		require.True(t, ok)
		return v
	}
	for _, test := range []struct {
		name   string
		change func(carrier, *callevent.Batch)
	}{
		{"the key of the function's text", func(_ carrier, b *callevent.Batch) { b.TextKey = "other.text" }},
		{"the resource's schema", func(c carrier, _ *callevent.Batch) { c.resource.SetSchemaUrl("other") }},
		{"the scope's schema", func(c carrier, _ *callevent.Batch) { c.scope.SetSchemaUrl("other") }},
		{"the scope's name", func(c carrier, _ *callevent.Batch) { c.scope.Scope().SetName("other") }},
		{"the scope's version", func(c carrier, _ *callevent.Batch) { c.scope.Scope().SetVersion("2") }},
		{"an attribute of the scope", func(c carrier, _ *callevent.Batch) { c.scope.Scope().Attributes().PutStr("tracer", "other") }},
		{"a text", func(c carrier, _ *callevent.Batch) { value(c, "service.name").SetStr("bank") }},
		{"a number", func(c carrier, _ *callevent.Batch) { value(c, "process.pid").SetInt(18) }},
		{"a number's type", func(c carrier, _ *callevent.Batch) { value(c, "process.pid").SetDouble(17) }},
		{"a fraction", func(c carrier, _ *callevent.Batch) { value(c, "share").SetDouble(0.25) }},
		{"a truth", func(c carrier, _ *callevent.Batch) { value(c, "true").SetBool(false) }},
		{"bytes", func(c carrier, _ *callevent.Batch) { value(c, "bytes").Bytes().Append(3) }},
		{"nothing", func(c carrier, _ *callevent.Batch) { value(c, "empty").SetStr("") }},
		{"an element of a list", func(c carrier, _ *callevent.Batch) { value(c, "process.command_args").Slice().At(1).SetStr("Bank") }},
		{"a longer list", func(c carrier, _ *callevent.Batch) { value(c, "process.command_args").Slice().AppendEmpty() }},
		{"one attribute more", func(c carrier, _ *callevent.Batch) { attributes(c).PutStr("more", "so") }},
		{"one attribute less", func(c carrier, _ *callevent.Batch) { attributes(c).Remove("empty") }},
		{"the order", func(c carrier, _ *callevent.Batch) {
			attributes(c).Remove("service.name")
			attributes(c).PutStr("service.name", "shop")
		}},
		{"another key", func(c carrier, _ *callevent.Batch) { attributes(c).Remove("empty"); attributes(c).PutEmpty("void") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := callevent.Batch{Stream: streamID(1), TextKey: "demo.text"}
			o := newOrigin(around(), &b, allAttributes)
			changed := around()
			test.change(changed, &b)
			assert.False(t, o.is(changed, &b))
			assert.True(t, newOrigin(changed, &b, allAttributes).is(changed, &b))
		})
	}
}

// Comparing maps needs a search for each key, and comparing nested lists any depth. So both count
// as different.
func TestNestedAttributesMakeANewOriginEachTime(t *testing.T) {
	for name, nest := range map[string]func(pcommon.Map){
		"a map":            func(m pcommon.Map) { m.PutEmptyMap("nested").PutInt("n", 1) },
		"a list in a list": func(m pcommon.Map) { m.PutEmptySlice("nested").AppendEmpty().SetEmptySlice() },
		"a map in a list":  func(m pcommon.Map) { m.PutEmptySlice("nested").AppendEmpty().SetEmptyMap() },
	} {
		c, b := around(), &callevent.Batch{Stream: streamID(1)}
		nest(c.resource.Resource().Attributes())
		assert.False(t, newOrigin(c, b, allAttributes).is(c, b), name)
	}
}

// A search for each key among all others would take seconds.
func TestTensOfThousandsOfAttributesAreComparedInOrder(t *testing.T) {
	const many = 40_000
	raw := make(map[string]any, many)
	for i := range many {
		raw[strconv.Itoa(i)] = int64(i)
	}
	c, b := around(), &callevent.Batch{Stream: streamID(1)}
	require.NoError(t, c.resource.Resource().Attributes().FromRaw(raw))
	o := newOrigin(c, b, allAttributes)
	assert.Greater(t, o.bytes, many*keyValueBytes)
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		if !o.is(c, b) {
			t.Error("the same is another")
		}
	}))
}
