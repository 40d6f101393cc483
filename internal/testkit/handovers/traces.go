// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package handovers builds traces from scripts of bytes, for fuzz tests: resources, scopes, spans, events and links,
// with attributes of every type, keys of any length, and nested values. Every script is valid.
package handovers

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Steps of a script and their operands. A step is a byte, modulo the number of steps.
const (
	StepResource  = iota // no operand
	StepScope            // no operand
	StepSpan             // one: IDs of the span and its parent
	StepBatch            // one: the number of the batch
	StepEvent            // no operand
	StepLink             // one: the ID of the linked span
	StepAttribute        // three: place, key and type, size
	steps
)

// Places of an attribute.
const (
	InResource = iota
	InScope
	InSpan
	InEvent
	InLink
	places
)

// Types of an attribute's value.
const (
	TypeText = iota
	TypeInt
	TypeDouble
	TypeBool
	TypeBytes
	TypeEmpty
	TypeLists
	TypeMaps
	TypeWide
	types
)

// MaxLevels is the maximum nesting of lists and maps in a value.
const MaxLevels = 100

// SpanName is the name of spans without a batch.
const SpanName = "ordinary"

// Attribute returns the step that adds an attribute: key is an index of keys, and size is the size or the depth of the
// value.
func Attribute(place, key, kind, size byte) []byte {
	return []byte{StepAttribute, place + places*key, kind, size}
}

// Traces builds the traces of a script. keys are the keys of attributes, beside an empty and a long one. carry adds
// batch number n to an empty span.
func Traces(script []byte, keys []string, carry func(span ptrace.Span, n byte)) ptrace.Traces {
	w := writer{td: ptrace.NewTraces(), keys: append([]string{"", strings.Repeat("long", 1000)}, keys...)}
	next := func() (b byte) {
		if len(script) > 0 {
			b, script = script[0], script[1:]
		}
		return b
	}
	for len(script) > 0 {
		switch next() % steps {
		case StepResource:
			w.newResource()
		case StepScope:
			w.newScope()
		case StepSpan:
			ids := next()
			span := w.newSpan()
			span.SetName(SpanName)
			span.SetTraceID([16]byte{1})
			span.SetSpanID([8]byte{ids & 15})
			span.SetParentSpanID([8]byte{ids >> 4})
			span.SetStartTimestamp(pcommon.Timestamp(ids))
			span.SetEndTimestamp(pcommon.Timestamp(ids) * 2)
		case StepBatch:
			carry(w.newSpan(), next())
		case StepEvent:
			w.lastSpan().Events().AppendEmpty().SetName("event")
		case StepLink:
			link := w.lastSpan().Links().AppendEmpty()
			link.SetTraceID([16]byte{1})
			link.SetSpanID([8]byte{next()})
		case StepAttribute:
			where, kind, size := next(), next(), next()
			key := w.keys[int(where/places)%len(w.keys)]
			put(w.attributes(where%places).PutEmpty(key), kind, int(size))
		}
	}
	return w.td
}

// writer builds traces and appends at the current position.
type writer struct {
	td   ptrace.Traces
	keys []string
}

func (w *writer) newResource() ptrace.ResourceSpans { return w.td.ResourceSpans().AppendEmpty() }

func (w *writer) lastResource() ptrace.ResourceSpans {
	if n := w.td.ResourceSpans().Len(); n > 0 {
		return w.td.ResourceSpans().At(n - 1)
	}
	return w.newResource()
}

func (w *writer) newScope() ptrace.ScopeSpans { return w.lastResource().ScopeSpans().AppendEmpty() }

func (w *writer) lastScope() ptrace.ScopeSpans {
	if all := w.lastResource().ScopeSpans(); all.Len() > 0 {
		return all.At(all.Len() - 1)
	}
	return w.newScope()
}

func (w *writer) newSpan() ptrace.Span { return w.lastScope().Spans().AppendEmpty() }

func (w *writer) lastSpan() ptrace.Span {
	if all := w.lastScope().Spans(); all.Len() > 0 {
		return all.At(all.Len() - 1)
	}
	span := w.newSpan()
	span.SetName(SpanName)
	return span
}

// attributes returns the attributes of the last element of a place.
func (w *writer) attributes(place byte) pcommon.Map {
	switch place {
	case InResource:
		return w.lastResource().Resource().Attributes()
	case InScope:
		return w.lastScope().Scope().Attributes()
	case InEvent:
		if all := w.lastSpan().Events(); all.Len() > 0 {
			return all.At(all.Len() - 1).Attributes()
		}
		return w.lastSpan().Events().AppendEmpty().Attributes()
	case InLink:
		if all := w.lastSpan().Links(); all.Len() > 0 {
			return all.At(all.Len() - 1).Attributes()
		}
		return w.lastSpan().Links().AppendEmpty().Attributes()
	default:
		return w.lastSpan().Attributes()
	}
}

func put(v pcommon.Value, kind byte, size int) {
	switch kind % types {
	case TypeText:
		v.SetStr(strings.Repeat("text", size))
	case TypeInt:
		v.SetInt(int64(size))
	case TypeDouble:
		v.SetDouble(float64(size))
	case TypeBool:
		v.SetBool(size%2 == 0)
	case TypeBytes:
		v.SetEmptyBytes().FromRaw(make([]byte, size))
	case TypeEmpty:
	case TypeLists:
		for range size % (MaxLevels + 1) {
			list := v.SetEmptySlice()
			list.AppendEmpty().SetStr("beside")
			v = list.AppendEmpty()
		}
	case TypeMaps:
		for range size % (MaxLevels + 1) {
			v = v.SetEmptyMap().PutEmpty("below")
		}
	case TypeWide:
		list := v.SetEmptySlice()
		for range size {
			list.AppendEmpty().SetEmptyMap().PutInt("n", 1)
		}
	}
}

// Levels returns the deepest nesting of lists and maps in attributes. It recurses over all of them.
func Levels(td ptrace.Traces) (levels int) {
	for _, rs := range td.ResourceSpans().All() {
		levels = max(levels, ofMap(rs.Resource().Attributes()))
		for _, ss := range rs.ScopeSpans().All() {
			levels = max(levels, ofMap(ss.Scope().Attributes()))
			for _, span := range ss.Spans().All() {
				levels = max(levels, ofMap(span.Attributes()))
				for _, event := range span.Events().All() {
					levels = max(levels, ofMap(event.Attributes()))
				}
				for _, link := range span.Links().All() {
					levels = max(levels, ofMap(link.Attributes()))
				}
			}
		}
	}
	return levels
}

func ofMap(m pcommon.Map) (levels int) {
	for _, v := range m.All() {
		levels = max(levels, ofValue(v))
	}
	return levels
}

func ofValue(v pcommon.Value) (levels int) {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		return 1 + ofMap(v.Map())
	case pcommon.ValueTypeSlice:
		for _, element := range v.Slice().All() {
			levels = max(levels, ofValue(element))
		}
		return 1 + levels
	default:
		return 0
	}
}
