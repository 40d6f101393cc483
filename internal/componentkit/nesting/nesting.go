// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package nesting checks how deep lists and maps are nested in the attributes that other programs
// sent. OTLP sets no bound, and a request of 2 MiB can have 260,000 levels. All code that copies,
// measures, logs or encodes an attribute recurses once for each level. So a component checks
// received data before it does any of these.
//
// The package's own walk stops at the bound.
package nesting

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Places of attributes.
const (
	placeResource = "resource"
	placeScope    = "scope"
	placeSpan     = "span"
	placeEvent    = "event"
	placeLink     = "link"
	placeRecord   = "log record"
	placeBody     = "body of a log record"
	placePoint    = "data point"
	placeExemplar = "exemplar"
	placeMetric   = "metric"
	placeProfiles = "dictionary of profiles"
)

// Error names an attribute that is nested deeper than allowed.
type Error struct {
	// Place is the place of the attribute, such as "resource", "scope", "span" or "log record".
	Place string
	// Span, Scope and Key name the attribute, each cut to [MaxText] bytes. Span is empty for a
	// resource or a scope, and Scope for a resource.
	Span, Scope, Key string
	// Most is the number of allowed levels. The number of the attribute's levels is unknown, because the walk stops.
	Most int
}

// MaxText is how many bytes of a text from outside are in an error or a log line.
const MaxText = 128

func (e *Error) Error() string {
	where := ""
	switch e.Place {
	case placeResource:
		where = "a resource"
	case placeScope:
		where = fmt.Sprintf("scope %q", e.Scope)
	case placeSpan:
		where = fmt.Sprintf("span %q in scope %q", e.Span, e.Scope)
	case placeEvent:
		where = fmt.Sprintf("an event of span %q in scope %q", e.Span, e.Scope)
	case placeLink:
		where = fmt.Sprintf("a link of span %q in scope %q", e.Span, e.Scope)
	default:
		where = fmt.Sprintf("the %s in scope %q", e.Place, e.Scope)
	}
	return fmt.Sprintf("attribute %q of %s: expected at most %d levels of lists and maps, got more", e.Key, where, e.Most)
}

// Traces returns an *[Error] if an attribute of a resource, scope, span, event or link has
// more than most levels of lists and maps. A text or a number has none, and a list of texts
// has one. Its time is in proportion to the size of td.
func Traces(td ptrace.Traces, most int) error {
	for _, rs := range td.ResourceSpans().All() {
		if key, found := deeper(rs.Resource().Attributes(), most); found {
			return &Error{Place: placeResource, Key: Cut(key), Most: most}
		}
		for _, ss := range rs.ScopeSpans().All() {
			if key, found := deeper(ss.Scope().Attributes(), most); found {
				return &Error{Place: placeScope, Scope: Cut(ss.Scope().Name()), Key: Cut(key), Most: most}
			}
			for _, span := range ss.Spans().All() {
				if place, key := inSpan(span, most); place != "" {
					return &Error{Place: place, Span: Cut(span.Name()), Scope: Cut(ss.Scope().Name()), Key: Cut(key), Most: most}
				}
			}
		}
	}
	return nil
}

// inSpan returns the place and the key of an attribute that is too deep, or no place.
func inSpan(span ptrace.Span, most int) (place, key string) {
	if key, found := deeper(span.Attributes(), most); found {
		return placeSpan, key
	}
	events, links := span.Events(), span.Links()
	for i := range events.Len() {
		if key, found := deeper(events.At(i).Attributes(), most); found {
			return placeEvent, key
		}
	}
	for i := range links.Len() {
		if key, found := deeper(links.At(i).Attributes(), most); found {
			return placeLink, key
		}
	}
	return "", ""
}

// deeper returns the key of an attribute with more than most levels. Almost all attributes are
// flat, which the first loop finds without leaving it.
func deeper(m pcommon.Map, most int) (key string, found bool) {
	nested := 0
	for _, v := range m.All() {
		if kind := v.Type(); kind == pcommon.ValueTypeMap || kind == pcommon.ValueTypeSlice {
			nested++
		}
	}
	if nested == 0 {
		return "", false
	}
	for key, v := range m.All() {
		if isDeeper(v, most) {
			return key, true
		}
	}
	return "", false
}

// isDeeper reports whether a value has more than most levels. It calls itself at most most
// times, one call inside the other.
func isDeeper(v pcommon.Value, most int) bool {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		if most == 0 {
			return true
		}
		for _, element := range v.Map().All() {
			if isDeeper(element, most-1) {
				return true
			}
		}
	case pcommon.ValueTypeSlice:
		if most == 0 {
			return true
		}
		for _, element := range v.Slice().All() {
			if isDeeper(element, most-1) {
				return true
			}
		}
	case pcommon.ValueTypeEmpty, pcommon.ValueTypeStr, pcommon.ValueTypeBool, pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBytes:
	}
	return false
}

// Cut returns the first [MaxText] bytes of a text, with "…" behind it where there are more.
func Cut(text string) string {
	if len(text) <= MaxText {
		return text
	}
	return strings.ToValidUTF8(text[:MaxText], "") + "…"
}
