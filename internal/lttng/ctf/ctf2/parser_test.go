// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf2

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

const preamble = "\x1e" + `{"type": "preamble", "version": 2}` + "\n"

// parse reads fragments, after a preamble, into a new trace.
func parse(fragments ...string) (*metadata.Trace, error) {
	trace := &metadata.Trace{}
	p := NewParser(trace)
	return trace, p.Append([]byte(preamble + "\x1e" + strings.Join(fragments, "\n\x1e") + "\n"))
}

// payload returns fragments with an event class that has one field of this class.
func payload(class string) []string {
	return []string{`{"type": "data-stream-class"}`,
		`{"type": "event-record-class", "payload-field-class": {"type": "structure", "member-classes": [{"name": "f", "field-class": ` + class + `}]}}`}
}

func TestErrorsContainPositionAndExpectedText(t *testing.T) {
	const where = "metadata, line 3, column 2, event-record-class.payload-field-class.member-classes[0].field-class"
	for _, c := range []struct {
		name      string
		fragments []string
		want      string
	}{
		{"no JSON", []string{`{"type": }`}, "metadata, line 2, column 11: expected an object of JSON, got invalid character '}' looking for beginning of value"},
		{"no object", []string{`[1]`}, "metadata, line 2, column 2: expected an object of JSON, got array"},
		{"no record separator", []string{`{"type": "preamble", "version": 2} {}`}, `metadata, line 2, column 37: expected a record separator before a fragment, got none`},
		{"a string", []string{`"}\\\""`, `{}`}, "metadata, line 2, column 2: expected an object of JSON, got string"},
		{"braces of two kinds", []string{`{"a": ["}", }`, `{}`}, "metadata, line 2, column 14: expected an object of JSON, got invalid character '}' looking for beginning of value"},
		{"no type", []string{`{}`}, "metadata, line 2, column 2, type: expected a string, got nothing"},
		{"an unknown type", []string{`{"type": "x"}`}, `metadata, line 2, column 2, type: expected a fragment's type, got "x"`},
		{"another version", []string{`{"type": "preamble", "version": 3}`}, "metadata, line 2, column 2, preamble.version: expected CTF version 2, got 3"},
		{"an extension", []string{`{"type": "preamble", "version": 2, "extensions": {"a": {"b": 1}}}`}, "metadata, line 2, column 2, preamble.extensions: expected no extensions, got 1"},
		{"another preamble", []string{`{"type": "preamble", "version": 2, "attributes": {}}`}, "metadata, line 2, column 2, preamble: expected the preamble as it was declared before, got another declaration"},
		{"an unknown clock", []string{`{"type": "data-stream-class", "default-clock-class-id": "c"}`}, `metadata, line 2, column 2, data-stream-class.default-clock-class-id: expected the ID of a clock class that was declared before, got "c"`},
		{"no frequency", []string{`{"type": "clock-class", "id": "c"}`}, "metadata, line 2, column 2, clock-class.frequency: expected an integer, got nothing"},
		{"frequency 0", []string{`{"type": "clock-class", "id": "c", "frequency": 0}`}, "metadata, line 2, column 2, clock-class.frequency: expected a frequency above 0, got 0"},
		{"an unknown stream class", []string{`{"type": "event-record-class", "data-stream-class-id": 3}`}, "metadata, line 2, column 2, event-record-class: expected the ID of a data stream class that was declared before, got 3"},
		{"a scope that is no structure", []string{`{"type": "trace-class", "packet-header-field-class": {"type": "null-terminated-string"}}`}, "metadata, line 2, column 2, trace-class.packet-header-field-class: expected a structure, got another field class"},
		{"a trace class after stream classes", []string{`{"type": "data-stream-class"}`, `{"type": "trace-class", "packet-header-field-class": {"type": "structure"}}`}, "metadata, line 3, column 2, trace-class: expected the trace class before data stream classes, got it after 1 of them"},
		{"an unknown alias", payload(`"u8"`), where + `: expected the name of a field class alias that was declared before, got "u8"`},
		{"an unknown field class", payload(`{"type": "x"}`), where + `.type: expected the type of a field class, got "x"`},
		{"too many bits", payload(`{"type": "fixed-length-bit-array", "length": 65, "byte-order": "little-endian"}`), where + ".length: expected 1 to 64 bits, got 65"},
		{"no byte order", payload(`{"type": "fixed-length-bit-array", "length": 64}`), where + ".byte-order: expected a string, got nothing"},
		{"an unknown byte order", payload(`{"type": "fixed-length-bit-array", "length": 64, "byte-order": "x"}`), where + `.byte-order: expected little-endian or big-endian, got "x"`},
		{"a bit order of its own", payload(`{"type": "fixed-length-bit-array", "length": 64, "byte-order": "big-endian", "bit-order": "first-to-last"}`), where + `.bit-order: expected last-to-first for this byte order, got "first-to-last"`},
		{"an alignment", payload(`{"type": "structure", "minimum-alignment": 3}`), where + ".minimum-alignment: expected a power of two up to 1048576, got 3"},
		{"a float of another size", payload(`{"type": "fixed-length-floating-point-number", "length": 16, "byte-order": "big-endian"}`), where + ".length: expected 32 or 64 bits, got 16"},
		{"an encoding", payload(`{"type": "null-terminated-string", "encoding": "x"}`), where + `.encoding: expected an encoding of Unicode, got "x"`},
		{"a role", payload(`{"type": "static-length-blob", "length": 1, "roles": ["x"]}`), where + `.roles[0]: expected a role, got "x"`},
		{"no flags", payload(`{"type": "fixed-length-bit-map", "length": 4, "byte-order": "big-endian"}`), where + ".flags: expected one or more flags, got none"},
		{"a base", payload(`{"type": "variable-length-signed-integer", "preferred-display-base": 7}`), where + ".preferred-display-base: expected 2, 8, 10 or 16, got 7"},
		{"a range from high to low", payload(`{"type": "variable-length-signed-integer", "mappings": {"a": [[2, 1]]}}`), where + ".mappings.a[0]: expected a range from low to high, got 2 to 1"},
		{"a range of one number", payload(`{"type": "variable-length-signed-integer", "mappings": {"a": [[2]]}}`), where + ".mappings.a[0]: expected an array of two integers, got 1 elements"},
		{"a number with a fraction", payload(`{"type": "static-length-blob", "length": 1.5}`), where + ".length: expected an integer, got 1.5"},
		{"a number below 0", payload(`{"type": "static-length-blob", "length": -1}`), where + ".length: expected an integer of 0 or more, got -1"},
		{"a number of more than 64 bits", payload(`{"type": "static-length-blob", "length": 18446744073709551616}`), where + ".length: expected an integer of at most 64 bits, got 18446744073709551616"},
		{"a number of far more than 64 bits", payload(`{"type": "static-length-blob", "length": 1e400}`), where + ".length: expected an integer of at most 64 bits, got 1e400"},
		{"an origin", payload(`{"type": "dynamic-length-blob", "length-field-location": {"origin": "x", "path": ["a"]}}`), where + `.length-field-location.origin: expected the name of a scope, got "x"`},
		{"an empty path", payload(`{"type": "dynamic-length-blob", "length-field-location": {"path": []}}`), where + ".length-field-location.path: expected 1 to 64 names, got 0"},
		{"a path that ends with null", payload(`{"type": "dynamic-length-blob", "length-field-location": {"path": ["a", "b", null]}}`), where + ".length-field-location.path: expected a name at the end of the path, got null"},
		{"a path that leaves its origin", payload(`{"type": "dynamic-length-blob", "length-field-location": {"origin": "packet-context", "path": [null, "a"]}}`), where + ".length-field-location.path: expected a path inside its origin, got null at its begin"},
		{"a member that occurs twice", payload(`{"type": "structure", "member-classes": [{"name": "a", "field-class": {"type": "structure"}}, {"name": "a"}]}`), where + ".member-classes[1]: expected one member of the name a, got a second one"},
		{"no options", payload(`{"type": "variant", "selector-field-location": {"path": ["a"]}, "options": []}`), where + ".options: expected one or more options, got none"},
		{"an option without ranges", payload(`{"type": "variant", "selector-field-location": {"path": ["a"]}, "options": [{"field-class": {"type": "structure"}}]}`), where + ".options[0].selector-field-ranges: expected one or more ranges, got nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(c.fragments...)
			require.EqualError(t, err, c.want)
		})
	}
	err := NewParser(&metadata.Trace{}).Append([]byte("\x1e{\"type\": \"trace-class\"}\n"))
	require.EqualError(t, err, `metadata, line 1, column 2: expected a preamble as the first fragment, got "trace-class"`)
}

func TestNestingIsBounded(t *testing.T) {
	open, end := `{"type": "static-length-array", "length": 1, "element-field-class": `, "}"
	_, err := parse(payload(strings.Repeat(open, 5000) + `{"type": "structure"}` + strings.Repeat(end, 5000))...)
	require.ErrorContains(t, err, "expected at most 64 levels of nesting, got more")
	_, err = parse(payload(strings.Repeat(open, 50_000) + `{"type": "structure"}` + strings.Repeat(end, 50_000))...)
	require.ErrorContains(t, err, "exceeded max depth")
}

func TestDimensionsAreBoundedAcrossAliases(t *testing.T) {
	fragments := []string{`{"type": "field-class-alias", "name": "a0", "field-class": {"type": "null-terminated-string"}}`}
	for i := range 65 {
		fragments = append(fragments, fmt.Sprintf(`{"type": "field-class-alias", "name": "a%d", "field-class": {"type": "static-length-array", "length": 1, "element-field-class": "a%d"}}`, i+1, i))
	}
	_, err := parse(fragments[:65]...)
	require.NoError(t, err)
	_, err = parse(fragments...)
	require.EqualError(t, err, "metadata, line 67, column 2, field-class-alias.field-class.element-field-class: expected an array of at most 64 dimensions, got more")
}

func TestLocationsWithParentsInTheMiddle(t *testing.T) {
	trace, err := parse(payload(`{"type": "dynamic-length-blob", "length-field-location": {"path": [null, "a", "b", null, "c"]}}`)...)
	require.NoError(t, err)
	ref := trace.Events[0].Fields.Members[0].Type.(*metadata.Bytes).LengthRef
	require.Equal(t, 1, ref.Up)
	require.Equal(t, []string{"a", "c"}, ref.Path)
}

func TestARepeatedFragmentChangesNothing(t *testing.T) {
	fragments := append([]string{`{"type": "trace-class"}`, `{"type": "clock-class", "id": "c", "frequency": 1000}`}, payload(`{"type": "null-terminated-string"}`)...)
	once, err := parse(fragments...)
	require.NoError(t, err)
	twice, err := parse(append(fragments, append([]string{strings.TrimSpace(preamble[1:])}, fragments...)...)...)
	require.NoError(t, err)
	require.Equal(t, once, twice)
	for _, changed := range []string{
		`{"type": "trace-class", "name": "other"}`, `{"type": "clock-class", "id": "c", "frequency": 1001}`,
		`{"type": "data-stream-class", "name": "other"}`, `{"type": "event-record-class", "name": "other"}`,
	} {
		_, err := parse(append(fragments, changed)...)
		require.ErrorContains(t, err, "as it was declared before, got another declaration")
	}
}

// BenchmarkManyEventClasses reads 1,500 event classes of 54 fields each, 9 MB.
func BenchmarkManyEventClasses(b *testing.B) {
	var members []string
	for i := range 54 {
		members = append(members, fmt.Sprintf(`{"name": "field_%d", "field-class": {"type": "fixed-length-unsigned-integer", "length": 64, "byte-order": "little-endian", "alignment": 8, "preferred-display-base": 10}}`, i))
	}
	fields := strings.Join(members, ", ")
	text := []byte(preamble + "\x1e" + `{"type": "data-stream-class", "id": 0}` + "\n")
	for i := range 1500 {
		text = fmt.Appendf(text, "\x1e"+`{"type": "event-record-class", "id": %d, "name": "shop:event_%d", "payload-field-class": {"type": "structure", "member-classes": [%s]}}`+"\n", i, i, fields)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, NewParser(&metadata.Trace{}).Append(text))
	}
}
