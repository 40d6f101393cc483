// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package printed_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/printed"
)

func TestAnEventIsReadWithAllItsScopes(t *testing.T) {
	const first = `timestamp = 09:12:46.426892924, trace = cap/tp1.ctf/ust/uid/0/64-bit, , trace:hostname = vm, trace:domain = ust, loglevel = TRACE_INFO (6), name = tpdemo:all, stream.packet.context = { cpu_id = 1 }, stream.event.context = { vtid = -3 }, event.context = { ip = 0xC0FFEE }, event.fields = { s = "a "b"
c", i = 7 }`
	const second = `timestamp = 09:12:46.500000000, trace:hostname = vm, trace:domain = ust, name = e, event.fields = { }`
	events, err := printed.Events(first + "\n" + second + "\n")
	require.NoError(t, err)
	require.Len(t, events, 2)
	e := events[0]
	assert.Equal(t, first, e.Text)
	assert.Equal(t, []any{"09:12:46.426892924", "vm", "tpdemo:all", 6, "TRACE_INFO"}, []any{e.Time, e.Host, e.Name, e.LogLevel, e.LevelName})
	assert.Equal(t, printed.Number("1"), e.PacketContext[0].Value)
	assert.Equal(t, printed.Number("-3"), e.StreamContext[0].Value)
	assert.Equal(t, printed.Number("0xC0FFEE"), e.EventContext[0].Value)
	assert.Equal(t, []string{"1", "-3", "0xC0FFEE", "a \"b\"\nc", "7", ""},
		[]string{e.Field("cpu_id"), e.Field("vtid"), e.Field("ip"), e.Field("s"), e.Field("i"), e.Field("none")})
	assert.Empty(t, events[1].LevelName)
	assert.Nil(t, events[1].StreamContext)
	assert.Equal(t, printed.Struct{}, events[1].Fields)
}

func TestAValueIsReadByItsShape(t *testing.T) {
	for text, want := range map[string]printed.Value{
		"-5":                              printed.Number("-5"),
		"0x1F":                            printed.Number("0x1F"),
		"1.5e-07":                         printed.Number("1.5e-07"),
		"-inf":                            printed.Number("-inf"),
		`""`:                              printed.Text(""),
		`"}, x"`:                          printed.Text("}, x"),
		`"a", "b"`:                        printed.Text(`a", "b`),
		"{ }":                             printed.Struct{},
		"[ ]":                             printed.List{},
		`[ [0] = "a", [1] = { } ]`:        printed.List{printed.Text("a"), printed.Struct{}},
		`( "NEG" : container = -5 )`:      printed.Label{Name: "NEG", Number: "-5"},
		`( <unknown> : container = 0x9 )`: printed.Label{Number: "0x9"},
	} {
		events, err := printed.Events("timestamp = 1, event.fields = { v = " + text + ", w = 1 }")
		if assert.NoError(t, err, text) {
			assert.Equal(t, want, events[0].Fields[0].Value, text)
			assert.Equal(t, "1", events[0].Field("w"), text)
		}
	}
}

func TestTextThatBabeltraceDoesNotPrintIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"name = e":                                    `expected a text that begins with "timestamp = "`,
		"timestamp = 1, x":                            "expected a name",
		"timestamp = 1, x = 1":                        "expected a property of an event in the output of babeltrace 1",
		"timestamp = 1, loglevel = 5":                 "expected a log level with its number",
		"timestamp = 1, loglevel = X (y)":             "expected a number of a log level",
		"timestamp = 1, event.fields = 5":             `expected "{ "`,
		"timestamp = 1, event.fields = { a = 1":       `expected " "`,
		"timestamp = 1, event.fields = { a = 1 } ?":   "expected a name",
		"timestamp = 1, event.fields = { a = , }":     "expected a value",
		`timestamp = 1, event.fields = { a = "x`:      "expected the end of a text",
		"timestamp = 1, event.fields = { a = [ 1 ] }": `expected "[0] = "`,
		"timestamp = 1, event.fields = { a = ( 1 ) }": "expected a label and its number",
	} {
		_, err := printed.Events(text)
		assert.ErrorContains(t, err, want, text)
	}
}
