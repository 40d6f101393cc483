// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package nested

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Signal is a signal of OTLP.
type Signal string

// The signals.
const (
	Traces   Signal = "traces"
	Logs     Signal = "logs"
	Metrics  Signal = "metrics"
	Profiles Signal = "profiles"
)

// Kind is the kind of nested values.
type Kind string

// A list in a list needs fewer bytes for each level than a map in a map.
const (
	Lists Kind = "lists"
	Maps  Kind = "maps"
)

// Place is the position of the nested value.
type Place struct {
	Signal Signal
	// Name is the name of the position: resource, scope, span, event, ...
	Name string
	path []field
}

// field is a field of a message that contains a message.
type field struct {
	number byte
	name   string
	// repeated fields are lists in JSON.
	repeated bool
}

// Fields of OTLP's messages, grouped by part of opentelemetry-proto.
var (
	resource   = field{1, "resource", false}
	attributes = field{1, "attributes", true}
	scope      = field{1, "scope", false}
	value      = field{2, "value", false}

	ofScope = field{3, "attributes", true} // InstrumentationScope.attributes

	resourceSpans = field{1, "resourceSpans", true}
	scopeSpans    = field{2, "scopeSpans", true}
	spans         = field{2, "spans", true}

	resourceLogs = field{1, "resourceLogs", true}
	scopeLogs    = field{2, "scopeLogs", true}
	logRecords   = field{2, "logRecords", true}

	resourceMetrics = field{1, "resourceMetrics", true}
	scopeMetrics    = field{2, "scopeMetrics", true}
	metrics         = field{2, "metrics", true}
	gauge           = field{5, "gauge", false}
	dataPoints      = field{1, "dataPoints", true}
	ofPoint         = field{7, "attributes", true} // NumberDataPoint.attributes

	resourceProfiles = field{1, "resourceProfiles", true}
	scopeProfiles    = field{2, "scopeProfiles", true}
	dictionary       = field{2, "dictionary", false}
)

// Places returns all positions of a request where a value can be nested.
func Places() []Place {
	return []Place{
		{Traces, "resource", []field{resourceSpans, resource, attributes, value}},
		{Traces, "scope", []field{resourceSpans, scopeSpans, scope, ofScope, value}},
		{Traces, "span", []field{resourceSpans, scopeSpans, spans, {9, "attributes", true}, value}},
		{Traces, "event", []field{resourceSpans, scopeSpans, spans, {11, "events", true}, {3, "attributes", true}, value}},
		{Traces, "link", []field{resourceSpans, scopeSpans, spans, {13, "links", true}, {4, "attributes", true}, value}},
		{Logs, "resource", []field{resourceLogs, resource, attributes, value}},
		{Logs, "scope", []field{resourceLogs, scopeLogs, scope, ofScope, value}},
		{Logs, "record", []field{resourceLogs, scopeLogs, logRecords, {6, "attributes", true}, value}},
		{Logs, "body", []field{resourceLogs, scopeLogs, logRecords, {5, "body", false}}},
		{Metrics, "resource", []field{resourceMetrics, resource, attributes, value}},
		{Metrics, "scope", []field{resourceMetrics, scopeMetrics, scope, ofScope, value}},
		{Metrics, "point", []field{resourceMetrics, scopeMetrics, metrics, gauge, dataPoints, ofPoint, value}},
		{Metrics, "exemplar", []field{
			resourceMetrics, scopeMetrics, metrics, gauge, dataPoints, {5, "exemplars", true}, {7, "filteredAttributes", true}, value,
		}},
		{Metrics, "metadata", []field{resourceMetrics, scopeMetrics, metrics, {12, "metadata", true}, value}},
		{Profiles, "resource", []field{resourceProfiles, resource, attributes, value}},
		{Profiles, "scope", []field{resourceProfiles, scopeProfiles, scope, ofScope, value}},
		{Profiles, "attribute table", []field{dictionary, {6, "attributeTable", true}, value}},
	}
}

// At returns the place of a signal with a name. It panics if there is none.
func At(signal Signal, name string) Place {
	for _, p := range Places() {
		if p.Signal == signal && p.Name == name {
			return p
		}
	}
	panic("no such place in " + string(signal) + ": " + name)
}

const (
	lengthDelimited = 2 // a wire type of protobuf

	// Fields of AnyValue, and the one field of both ArrayValue and KeyValueList.
	arrayValue, kvlistValue, values = 5, 6, 1
)

// Protobuf returns a request of at most size bytes, and its number of nested levels. beside, if not empty, is added to
// the same message of a resource; [Inside] returns such bytes.
func Protobuf(at Place, kind Kind, size int, beside []byte) (request []byte, levels int) {
	w := backward{buffer: make([]byte, size), at: size}
	// Each field around the nested value needs at most a tag and five bytes of length.
	around := len(beside) + (len(at.path)+1)*(1+binary.MaxVarintLen32)
	for w.at > around+3*(1+binary.MaxVarintLen32) {
		if kind == Maps {
			w.wrap(value.number)
			w.wrap(values)
			w.wrap(kvlistValue)
		} else {
			w.wrap(values)
			w.wrap(arrayValue)
		}
		levels++
	}
	for i := len(at.path) - 1; i >= 0; i-- {
		if i == 0 {
			w.prepend(beside)
		}
		w.wrap(at.path[i].number)
	}
	return w.buffer[w.at:], levels
}

// Wide returns a request for traces of at most size bytes, with as many empty spans as fit.
func Wide(size int) []byte {
	const around = 2 * (1 + binary.MaxVarintLen32)
	w := backward{buffer: make([]byte, size), at: size}
	for w.at > around+len("\x12\x00") {
		w.prepend([]byte{spans.number<<3 | lengthDelimited, 0})
	}
	w.wrap(scopeSpans.number)
	w.wrap(resourceSpans.number)
	return w.buffer[w.at:]
}

// backward writes a message from its end to its begin.
type backward struct {
	buffer []byte
	at     int
}

// wrap makes everything written so far the content of a field.
func (w *backward) wrap(number byte) {
	var head [1 + binary.MaxVarintLen64]byte
	head[0] = number<<3 | lengthDelimited
	n := 1 + binary.PutUvarint(head[1:], uint64(len(w.buffer)-w.at))
	w.prepend(head[:n])
}

func (w *backward) prepend(b []byte) {
	w.at -= len(b)
	copy(w.buffer[w.at:], b)
}

// Inside returns the content of the only message of a resource in a protobuf request. It panics if the request has
// another content.
func Inside(request []byte) []byte {
	n, read := binary.Uvarint(request[1:])
	if read <= 0 || 1+read+int(n) != len(request) {
		panic("expected a request with one message of a resource")
	}
	return request[1+read:]
}

// JSON returns a request of at most size bytes, and its number of nested levels.
func JSON(at Place, kind Kind, size int) (request []byte, levels int) {
	open, end := `{"arrayValue":{"values":[`, `]}}`
	if kind == Maps {
		open, end = `{"kvlistValue":{"values":[{"key":"","value":`, `}]}}`
	}
	var before, after strings.Builder
	before.WriteString("{")
	for i, f := range at.path {
		if i > 0 {
			before.WriteString("{")
		}
		before.WriteString(`"` + f.name + `":`)
		if f.repeated {
			before.WriteString("[")
		}
	}
	for i := len(at.path) - 1; i >= 0; i-- {
		if at.path[i].repeated {
			after.WriteString("]")
		}
		after.WriteString("}")
	}
	levels = (size - before.Len() - after.Len() - len(`{}`)) / (len(open) + len(end))
	var b bytes.Buffer
	b.WriteString(before.String())
	b.WriteString(strings.Repeat(open, levels))
	b.WriteString("{}")
	b.WriteString(strings.Repeat(end, levels))
	b.WriteString(after.String())
	return b.Bytes(), levels
}
