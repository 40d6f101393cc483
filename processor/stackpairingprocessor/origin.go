// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/callevent"
)

// origin is what the spans of a stream have in common. It doesn't change: when
// the resource or the scope does, the stream gets a new one.
type origin struct {
	identity          identity
	textKey           string
	resource          pcommon.Resource
	resourceSchemaURL string
	scope             pcommon.InstrumentationScope
	scopeSchemaURL    string
	// bytes is about what it takes.
	bytes int
}

// carrier is where a batch was found: a span, and what is around it.
type carrier struct {
	resource ptrace.ResourceSpans
	scope    ptrace.ScopeSpans
	span     ptrace.Span
}

// newOrigin copies what is around a batch.
func newOrigin(c carrier, b *callevent.Batch) *origin {
	o := &origin{
		identity:          newIdentity(b.Stream),
		textKey:           b.TextKey,
		resource:          pcommon.NewResource(),
		resourceSchemaURL: c.resource.SchemaUrl(),
		scope:             pcommon.NewInstrumentationScope(),
		scopeSchemaURL:    c.scope.SchemaUrl(),
	}
	c.resource.Resource().CopyTo(o.resource)
	c.scope.Scope().CopyTo(o.scope)
	o.bytes = new(ptrace.ProtoMarshaler).TracesSize(o.traces(nil, nil))
	return o
}

// is reports whether newOrigin would make the same.
func (o *origin) is(c carrier, b *callevent.Batch) bool {
	scope := c.scope.Scope()
	return o.textKey == b.TextKey &&
		o.resourceSchemaURL == c.resource.SchemaUrl() &&
		o.resource.Attributes().Equal(c.resource.Resource().Attributes()) &&
		o.scopeSchemaURL == c.scope.SchemaUrl() &&
		o.scope.Name() == scope.Name() && o.scope.Version() == scope.Version() &&
		o.scope.Attributes().Equal(scope.Attributes())
}
