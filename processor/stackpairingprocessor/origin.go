// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// origin is the common part of a stream's spans. It does not change. If the resource or the
// scope changes, the stream gets a new one.
type origin struct {
	identity identity
	// shown are the optional attributes of spans. textKey is the batches', whether it is shown
	// or not.
	shown             SpanAttributesConfig
	textKey           string
	resource          pcommon.Resource
	resourceSchemaURL string
	scope             pcommon.InstrumentationScope
	scopeSchemaURL    string
	// attributes are those of the resource and of the scope, to compare with.
	attributes [2]attributeList
	// bytes is about its memory.
	bytes int
}

// carrier is the span of a batch, with its resource and scope.
type carrier struct {
	resource ptrace.ResourceSpans
	scope    ptrace.ScopeSpans
	span     ptrace.Span
}

// newOrigin copies the resource and scope of a batch.
func newOrigin(c carrier, b *callevent.Batch, shown SpanAttributesConfig) *origin {
	o := &origin{
		shown:             shown,
		identity:          newIdentity(b.Stream),
		textKey:           b.TextKey,
		resource:          pcommon.NewResource(),
		resourceSchemaURL: c.resource.SchemaUrl(),
		scope:             pcommon.NewInstrumentationScope(),
		scopeSchemaURL:    c.scope.SchemaUrl(),
	}
	c.resource.Resource().CopyTo(o.resource)
	c.scope.Scope().CopyTo(o.scope)
	o.attributes = [2]attributeList{listOf(o.resource.Attributes()), listOf(o.scope.Attributes())}
	o.bytes = memoryOf(o.traces(nil, nil)) + (len(o.attributes[0])+len(o.attributes[1]))*keyValueBytes
	return o
}

// is reports whether newOrigin would return the same. It may report false for attributes in
// another order. The stream then gets another origin, which does no harm.
func (o *origin) is(c carrier, b *callevent.Batch) bool {
	scope := c.scope.Scope()
	return o.textKey == b.TextKey &&
		o.resourceSchemaURL == c.resource.SchemaUrl() &&
		o.attributes[0].are(c.resource.Resource().Attributes()) &&
		o.scopeSchemaURL == c.scope.SchemaUrl() &&
		o.scope.Name() == scope.Name() && o.scope.Version() == scope.Version() &&
		o.attributes[1].are(scope.Attributes())
}

// attributeList has attributes in their order. A pcommon.Map searches all of them for a key,
// and a resource can have tens of thousands.
type attributeList []keyValue

type keyValue struct {
	key   string
	value pcommon.Value
}

// keyValueBytes is the memory of an attribute in a list.
const keyValueBytes = int(unsafe.Sizeof(keyValue{}))

// listOf lists the attributes of m, which must not change afterwards.
func listOf(m pcommon.Map) attributeList {
	list := make(attributeList, 0, m.Len())
	for key, value := range m.All() {
		list = append(list, keyValue{key, value})
	}
	return list
}

// are reports whether m has the same attributes in the same order, in a time that is
// proportional to their size.
func (l attributeList) are(m pcommon.Map) bool {
	if m.Len() != len(l) {
		return false
	}
	i := 0
	for key, value := range m.All() {
		if key != l[i].key || !sameValue(value, l[i].value) {
			return false
		}
		i++
	}
	return true
}

// sameValue reports whether a and b are the same. It reports false for maps and for lists
// inside lists, which resources hardly have.
func sameValue(a, b pcommon.Value) bool {
	if a.Type() != b.Type() || a.Type() == pcommon.ValueTypeMap {
		return false
	}
	if a.Type() != pcommon.ValueTypeSlice {
		return a.Equal(b)
	}
	x, y := a.Slice(), b.Slice()
	if x.Len() != y.Len() {
		return false
	}
	for i := range x.Len() {
		nested := x.At(i).Type() == pcommon.ValueTypeMap || x.At(i).Type() == pcommon.ValueTypeSlice
		if nested || !x.At(i).Equal(y.At(i)) {
			return false
		}
	}
	return true
}
