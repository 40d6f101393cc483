// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/arthas"
)

func TestIDsOfAWatchedValue(t *testing.T) {
	for name, tt := range map[string]struct {
		drawn, trace, span, value string
		no                        bool
	}{
		"both":                       {drawn: "@ArrayList[\n    @String[4bf9],\n    @String[00f0],\n    @Long[7],\n]", trace: "4bf9", span: "00f0", value: "@Long[7]"},
		"none":                       {drawn: "@ArrayList[\n    null,\n    null,\n    null,\n]", value: "null"},
		"a value of several lines":   {drawn: "@ArrayList[\n    @String[a],\n    null,\n    @ArrayList[\n        @Long[7],\n    ],\n]", trace: "a", value: "@ArrayList[\n    @Long[7],\n]"},
		"a value like the end":       {drawn: "@ArrayList[\n    null,\n    null,\n    @X[a,\n],\n]", value: "@X[a,\n]"},
		"brackets in a text":         {drawn: "@ArrayList[\n    @String[a],b[],\n    null,\n    null,\n]", trace: "a],b[", value: "null"},
		"an ID that is no text":      {drawn: "@ArrayList[\n    @Long[7],\n    null,\n    null,\n]", no: true},
		"an ID of several lines":     {drawn: "@ArrayList[\n    @X[\n    ],\n    null,\n    null,\n]", no: true},
		"another list":               {drawn: "@ArrayList[\n]", no: true},
		"a list of one":              {drawn: "@ArrayList[\n    null,\n]", no: true},
		"JSON":                       {drawn: `["a","b",[7]]`, no: true},
		"larger than the size limit": {drawn: "@ArrayList[\n    @String[a],\n    null,\n    @String[ Object size exceeds size limit: 100", trace: "a", value: "@String[ Object size exceeds size limit: 100"},
		"cut in an ID":               {drawn: "@ArrayList[\n    @String[a", no: true},
		"nothing":                    {no: true},
	} {
		t.Run(name, func(t *testing.T) {
			trace, span, value, ok := (&arthas.Watch{Value: tt.drawn}).Identified()
			assert.Equal(t, !tt.no, ok)
			assert.Equal(t, []string{tt.trace, tt.span, tt.value}, []string{trace, span, value})
		})
	}
}

// A value of any text is read as it was drawn, and never as an ID.
func FuzzIdentified(f *testing.F) {
	f.Add("4bf9", "00f0", "@ArrayList[\n    @Long[7],\n]")
	f.Add("],", "null", ",\n]")
	f.Fuzz(func(t *testing.T, trace, span, value string) {
		_, _, _, _ = (&arthas.Watch{Value: value}).Identified()
		if strings.Contains(trace+span, "\n") {
			return // the server draws \n
		}
		drawn := "@ArrayList[\n    @String[" + trace + "],\n    @String[" + span + "],\n    " + strings.ReplaceAll(value, "\n", "\n    ") + ",\n]"
		gotTrace, gotSpan, gotValue, ok := (&arthas.Watch{Value: drawn}).Identified()
		assert.True(t, ok)
		assert.Equal(t, []string{trace, span, value}, []string{gotTrace, gotSpan, gotValue})
	})
}
