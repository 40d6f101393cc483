// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Approximate memory of pdata values. Each value includes its place in a slice, of which a third
// may be unused, and its wrapper.
const (
	spanMemory  = 232
	eventMemory = 80
	linkMemory  = 96
	entryMemory = 56
	valueMemory = 24
	wrapMemory  = 16
)

// memoryOf returns about the memory of the traces. It counts each text, though the spans of one
// function share them.
func memoryOf(traces ptrace.Traces) (bytes int) {
	for _, rs := range traces.ResourceSpans().All() {
		bytes += memoryOfMap(rs.Resource().Attributes()) + len(rs.SchemaUrl())
		for _, ss := range rs.ScopeSpans().All() {
			bytes += memoryOfMap(ss.Scope().Attributes()) + len(ss.Scope().Name()) + len(ss.Scope().Version()) + len(ss.SchemaUrl())
			for _, span := range ss.Spans().All() {
				bytes += memoryOfSpan(span)
			}
		}
	}
	return bytes
}

func memoryOfSpan(span ptrace.Span) int {
	bytes := spanMemory + len(span.Name()) + memoryOfMap(span.Attributes())
	for _, event := range span.Events().All() {
		bytes += eventMemory + len(event.Name()) + memoryOfMap(event.Attributes())
	}
	for _, link := range span.Links().All() {
		bytes += linkMemory + memoryOfMap(link.Attributes())
	}
	return bytes
}

func memoryOfMap(m pcommon.Map) (bytes int) {
	for key, value := range m.All() {
		bytes += entryMemory + len(key) + memoryOfValue(value)
	}
	return bytes
}

// memoryOfValue returns the memory of a value without its place.
func memoryOfValue(v pcommon.Value) int {
	bytes := wrapMemory
	switch v.Type() {
	case pcommon.ValueTypeStr:
		bytes += len(v.Str())
	case pcommon.ValueTypeBytes:
		bytes += v.Bytes().Len()
	case pcommon.ValueTypeMap:
		bytes += entryMemory + memoryOfMap(v.Map())
	case pcommon.ValueTypeSlice:
		bytes += valueMemory
		for _, element := range v.Slice().All() {
			bytes += valueMemory + memoryOfValue(element)
		}
	case pcommon.ValueTypeEmpty, pcommon.ValueTypeBool, pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
	}
	return bytes
}
