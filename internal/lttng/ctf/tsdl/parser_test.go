// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// parse reads text into a new trace.
func parse(text string) (*metadata.Trace, error) {
	trace := &metadata.Trace{}
	p := NewParser(trace)
	return trace, p.Append([]byte(text))
}

// u8 is the declaration that most tests need first.
const u8 = "typealias integer { size = 8; } := uint8_t;\n"

func TestTypes(t *testing.T) {
	byteType := &metadata.Integer{Size: 8, Align: 8, Base: 10}
	ref := func(path ...string) *metadata.Ref { return &metadata.Ref{Search: true, Path: path} }
	cases := []struct {
		name string
		// fields are the fields of an event.
		fields string
		want   []metadata.Member
	}{
		{"integers with every attribute", "integer { size = 0x21; align = 16; signed = true; byte_order = be; base = x; encoding = UTF8; map = clock.mono.value; } a;",
			[]metadata.Member{{Name: "a", Type: &metadata.Integer{Size: 33, Align: 16, Signed: true, Order: metadata.BigEndian, Base: 16, Encoding: metadata.UTF8, Clock: "mono"}}}},
		{"integers of bits are aligned to bits", "integer { size = 7; } a; integer { size = 16; } b;",
			[]metadata.Member{{Name: "a", Type: &metadata.Integer{Size: 7, Align: 1, Base: 10}}, {Name: "b", Type: &metadata.Integer{Size: 16, Align: 8, Base: 10}}}},
		{"signs, bases and byte orders by their other names", "integer { size = 1; signed = 1; base = octal; byte_order = network; } a; integer { size = 1; signed = FALSE; base = 2; byte_order = native; } b;",
			[]metadata.Member{{Name: "a", Type: &metadata.Integer{Size: 1, Align: 1, Signed: true, Base: 8, Order: metadata.BigEndian}}, {Name: "b", Type: &metadata.Integer{Size: 1, Align: 1, Base: 2}}}},
		{"floating point numbers", "floating_point { exp_dig = 8; mant_dig = 24; byte_order = le; } a; floating_point { exp_dig = 11; mant_dig = 53; align = 64; } b;",
			[]metadata.Member{{Name: "a", Type: &metadata.Float{Size: 32, Align: 8, Order: metadata.LittleEndian}}, {Name: "b", Type: &metadata.Float{Size: 64, Align: 64}}}},
		{"strings", "string a; string { encoding = ASCII; } b;",
			[]metadata.Member{{Name: "a", Type: &metadata.String{Encoding: metadata.UTF8}}, {Name: "b", Type: &metadata.String{Encoding: metadata.ASCII}}}},
		{"arrays, of arrays, and several names", "uint8_t a[2], b[3][4], (c[5])[6], d;",
			[]metadata.Member{
				{Name: "a", Type: &metadata.Array{Element: byteType, Length: 2}},
				{Name: "b", Type: &metadata.Array{Element: &metadata.Array{Element: byteType, Length: 4}, Length: 3}},
				{Name: "c", Type: &metadata.Array{Element: &metadata.Array{Element: byteType, Length: 6}, Length: 5}},
				{Name: "d", Type: byteType},
			}},
		{"sequences", "uint8_t n; uint8_t a[n]; uint8_t b[stream.packet.context.x.y][event.fields.n];",
			[]metadata.Member{
				{Name: "n", Type: byteType},
				{Name: "a", Type: &metadata.Array{Element: byteType, LengthRef: ref("n")}},
				{Name: "b", Type: &metadata.Array{
					LengthRef: &metadata.Ref{Origin: metadata.PacketContext, Path: []string{"x", "y"}},
					Element:   &metadata.Array{Element: byteType, LengthRef: &metadata.Ref{Origin: metadata.EventFields, Path: []string{"n"}}},
				}},
			}},
		{"enumerations", "enum : uint8_t { a, b = 5, \"c d\", e = -3 ... 4, a = 9, event } x;",
			[]metadata.Member{{Name: "x", Type: &metadata.Integer{Size: 8, Align: 8, Base: 10, Enum: true, Mappings: []metadata.Mapping{
				{Label: "a", Ranges: []metadata.Range{one(0), one(9)}},
				{Label: "b", Ranges: []metadata.Range{one(5)}},
				{Label: "c d", Ranges: []metadata.Range{one(6)}},
				{Label: "e", Ranges: []metadata.Range{{Low: metadata.Signed(-3), High: metadata.Signed(4)}}},
				{Label: "event", Ranges: []metadata.Range{one(10)}},
			}}}}},
		{"enumerations of int, and of the largest values", "typealias integer { size = 64; } := int; enum { a = 0xFFFFFFFFFFFFFFFF, b = -18446744073709551615 } x;",
			[]metadata.Member{{Name: "x", Type: &metadata.Integer{Size: 64, Align: 8, Base: 10, Enum: true, Mappings: []metadata.Mapping{
				{Label: "a", Ranges: []metadata.Range{{Low: metadata.Unsigned(1<<64 - 1), High: metadata.Unsigned(1<<64 - 1)}}},
				{Label: "b", Ranges: []metadata.Range{{Low: metadata.Number{Negative: true, Magnitude: 1<<64 - 1}, High: metadata.Number{Negative: true, Magnitude: 1<<64 - 1}}}},
			}}}}},
		{"structures inside of structures", "struct { uint8_t a; struct { } b; } s; struct in { uint8_t c; } align(32); struct in d;",
			[]metadata.Member{
				{Name: "s", Type: metadata.NewStruct([]metadata.Member{{Name: "a", Type: byteType}, {Name: "b", Type: metadata.NewStruct(nil, 1)}}, 1)},
				{Name: "d", Type: metadata.NewStruct([]metadata.Member{{Name: "c", Type: byteType}}, 32)},
			}},
		{"variants with and without tag", "variant v { uint8_t a; string b; }; enum : uint8_t { a, b } t; variant v <t> x; variant <t> { uint8_t a; } y; variant w <event.context.q> { uint8_t a; } z;",
			[]metadata.Member{
				{Name: "t", Type: &metadata.Integer{Size: 8, Align: 8, Base: 10, Enum: true, Mappings: []metadata.Mapping{{Label: "a", Ranges: []metadata.Range{one(0)}}, {Label: "b", Ranges: []metadata.Range{one(1)}}}}},
				{Name: "x", Type: &metadata.Variant{ByLabel: true, Selector: *ref("t"), Options: []metadata.Option{{Name: "a", Type: byteType}, {Name: "b", Type: &metadata.String{Encoding: metadata.UTF8}}}}},
				{Name: "y", Type: &metadata.Variant{ByLabel: true, Selector: *ref("t"), Options: []metadata.Option{{Name: "a", Type: byteType}}}},
				{Name: "z", Type: &metadata.Variant{ByLabel: true, Selector: metadata.Ref{Origin: metadata.EventContext, Path: []string{"q"}}, Options: []metadata.Option{{Name: "a", Type: byteType}}}},
			}},
		{"names of types of several words, with pointers and const", "typealias uint8_t := unsigned long int; typealias uint8_t := void *; typedef uint8_t b, c[2]; unsigned long int x; void * y; const c z; const unsigned long int w;",
			[]metadata.Member{{Name: "x", Type: byteType}, {Name: "y", Type: byteType}, {Name: "z", Type: &metadata.Array{Element: byteType, Length: 2}}, {Name: "w", Type: byteType}}},
		{"names of types are resolved from the innermost scope outwards", "struct { typealias integer { size = 3; } := uint8_t; uint8_t a; } s; uint8_t b;",
			[]metadata.Member{{Name: "s", Type: metadata.NewStruct([]metadata.Member{{Name: "a", Type: &metadata.Integer{Size: 3, Align: 1, Base: 10}}}, 1)}, {Name: "b", Type: byteType}}},
		{"constant expressions", "uint8_t a[2 + 3 * (4 - 1) % 5], b[~-5 | 1 << 4], c[-(-6) / 4 ^ 0b11], d['a'], e[0x1Full >> 1 & 7], f[+1];",
			[]metadata.Member{
				{Name: "a", Type: &metadata.Array{Element: byteType, Length: 2 + 3*3%5}}, {Name: "b", Type: &metadata.Array{Element: byteType, Length: 4 | 16}},
				{Name: "c", Type: &metadata.Array{Element: byteType, Length: 1 ^ 3}}, {Name: "d", Type: &metadata.Array{Element: byteType, Length: 'a'}},
				{Name: "e", Type: &metadata.Array{Element: byteType, Length: 0x1F >> 1 & 7}}, {Name: "f", Type: &metadata.Array{Element: byteType, Length: 1}},
			}},
		{"comments anywhere", "uint8_t /* ; } */ a // [3]\n\t; /**/ uint8_t b /***/ ;/* \" */",
			[]metadata.Member{{Name: "a", Type: byteType}, {Name: "b", Type: byteType}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			trace, err := parse(u8 + "event { fields := struct { " + c.fields + " }; };")
			require.NoError(t, err)
			require.Empty(t, trace.Notes)
			require.Len(t, trace.Events, 1)
			members := trace.Events[0].Fields.Members
			for _, m := range members {
				removePositions(m.Type)
			}
			require.Equal(t, c.want, members)
		})
	}
}

func TestANamedTypeNeedsNoSemicolon(t *testing.T) {
	trace, err := parse(u8 + "struct one { uint8_t a; } enum e : uint8_t { b }\nstruct two { struct one c; enum e d; } align(16) event { name = x; fields := struct two; };")
	require.NoError(t, err)
	require.Equal(t, uint64(16), trace.Events[0].Fields.Alignment())
	require.Len(t, trace.Events[0].Fields.Members, 2)
	_, err = parse(u8 + "struct one { uint8_t a; } b;")
	require.ErrorContains(t, err, `line 2, column 27: expected a declaration, got the word "b"`)
}

func one(n int64) metadata.Range {
	return metadata.Range{Low: metadata.Signed(n), High: metadata.Signed(n)}
}

// removePositions removes the positions of references.
func removePositions(t metadata.Type) {
	switch t := t.(type) {
	case *metadata.Array:
		if t.LengthRef != nil {
			t.LengthRef.Where = metadata.Position{}
		}
		removePositions(t.Element)
	case *metadata.Variant:
		t.Selector.Where = metadata.Position{}
	}
}

func TestBlocks(t *testing.T) {
	trace, err := parse(u8 + `
trace {
	major = 1; minor = 8; uuid = "01234567-89ab-cdef-0123-456789ABCDEF"; byte_order = be;
	typealias integer { size = 32; } := uint32_t;
	packet.header := struct { uint32_t magic; };
};
env { domain = "k\x65r\156el\t\"\\"; major = 2; minus = -3; };
clock {
	name = mono; uuid = "00000000-0000-0000-0000-000000000001"; description = "d";
	freq = 3000; precision = 4; offset_s = -5; offset = 6; absolute = TRUE;
};
struct header { uint8_t id; };
stream { id = 3; event.header := struct header; packet.context := struct { uint8_t cpu_id; }; event.context := struct { uint8_t vpid; }; };
event {
	name = "a:b"; id = 9; stream_id = 3; loglevel = -2; model.emf.uri = "http://x/";
	context := struct { uint8_t c; }; fields := struct { uint8_t f; };
};
callsite { name = "a:b"; func = "main"; file = "x.c"; line = 12; ip = 0x400; };
event { name = other; };
`)
	require.NoError(t, err)
	require.Empty(t, trace.Notes)
	u := &metadata.Integer{Size: 8, Align: 8, Base: 10}
	of := func(name string, t metadata.Type) *metadata.Struct {
		return metadata.NewStruct([]metadata.Member{{Name: name, Type: t}}, 1)
	}
	require.Equal(t, &metadata.Trace{
		Major: 1, Minor: 8, Declared: true, HasUUID: true, ByteOrder: metadata.BigEndian,
		UUID:         [16]byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF},
		PacketHeader: of("magic", &metadata.Integer{Size: 32, Align: 8, Base: 10}),
		Env: []metadata.EnvEntry{
			{Name: "domain", Text: "kernel\t\"\\"},
			{Name: "major", Number: metadata.Unsigned(2), IsNumber: true},
			{Name: "minus", Number: metadata.Signed(-3), IsNumber: true},
		},
		Clocks: []*metadata.Clock{{
			Name: "mono", UUID: [16]byte{15: 1}, HasUUID: true, Description: "d", Frequency: 3000,
			Precision: 4, OffsetSeconds: -5, Offset: 6, Absolute: true,
		}},
		Streams: []*metadata.Stream{{ID: 3, HasID: true, EventHeader: of("id", u), PacketContext: of("cpu_id", u), EventContext: of("vpid", u)}},
		Events: []*metadata.Event{
			{Name: "a:b", ID: 9, HasID: true, StreamID: 3, HasStreamID: true, LogLevel: -2, HasLogLevel: true, URI: "http://x/", Context: of("c", u), Fields: of("f", u)},
			{Name: "other"},
		},
		Callsites: []metadata.Callsite{{Name: "a:b", Function: "main", File: "x.c", Line: 12, IP: 0x400}},
	}, trace)
}

func TestTextIsUTF8(t *testing.T) {
	trace, err := parse(u8 + "env { a = \"caf\xe9\"; b = \"caf\\xe9\"; c = \"caf\\xc3\\xa9\"; d = \"café\"; };\nevent { name = \"a:\xff\xfe\"; };")
	require.NoError(t, err)
	require.Equal(t, []metadata.EnvEntry{
		{Name: "a", Text: "caf\uFFFD"}, {Name: "b", Text: "caf\uFFFD"}, {Name: "c", Text: "café"}, {Name: "d", Text: "café"},
	}, trace.Env)
	require.Equal(t, "a:\uFFFD", trace.Events[0].Name)
}

func TestUnknownAttributesAreIgnoredWithANote(t *testing.T) {
	trace, err := parse("event {\n\tname = x;\n\tcolour.of = \"red\";\n\tfields := struct { integer { size = 3; mood = 7; } a; };\n};")
	require.NoError(t, err)
	require.Equal(t, []string{
		`metadata, line 3, column 2: an event has no attribute "colour.of": ignored`,
		`metadata, line 4, column 41: an integer has no attribute "mood": ignored`,
	}, trace.Notes)
	require.Len(t, trace.Events, 1)
}

func TestErrorsContainPositionAndExpectedText(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"an unknown type", "event {\n  fields := struct { uint9_t a; };\n};", `line 2, column 22: expected a type that was declared before, got "uint9_t"`},
		{"an unknown structure", "event { fields := struct x; };", `line 1, column 19: expected a type that was declared before, got "struct x"`},
		{"no semicolon", "event { name = \"x\" };", `line 1, column 20: expected ";", got "}"`},
		{"no declaration", "\n\n  nonsense = 3;", `line 3, column 3: expected a declaration, got the word "nonsense"`},
		{"too many braces", "event { } };", `line 1, column 11: expected ";", got "}"`},
		{"no size", "typealias integer { align = 8; } := a;", `line 1, column 11: expected an integer with a size, got none`},
		{"too large an integer", "typealias integer { size = 65; } := a;", `line 1, column 21: expected a size of 1 to 64 bits, got 65`},
		{"an alignment", "typealias integer { size = 6; align = 3; } := a;", `line 1, column 31: expected an alignment that is a power of two up to 1048576, got 3`},
		{"a base", "typealias integer { size = 6; base = 7; } := a;", `line 1, column 31: expected base 2, 8, 10 or 16, got 7`},
		{"a byte order", "typealias integer { size = 6; byte_order = middle; } := a;", `line 1, column 31: expected a byte order, got "middle"`},
		{"a clock", "typealias integer { size = 6; map = clock.x; } := a;", `line 1, column 31: expected clock.NAME.value, got clock.x`},
		{"a float of another size", "typealias floating_point { exp_dig = 5; mant_dig = 11; } := a;", `line 1, column 11: expected exp_dig and mant_dig 8 and 24, or 11 and 53, got 5 and 11`},
		{"an attribute that occurs twice", "typealias integer { size = 6; size = 7; } := a;", `line 1, column 31: expected one attribute size, got a second one`},
		{"a value of another kind", "trace { major = \"1\"; };", `line 1, column 9: expected a number for major, got a string`},
		{"a version", "trace { major = 2; };", `line 1, column 9: expected CTF version 1.8, got major 2`},
		{"no byte order", "trace { major = 1; };", `line 1, column 1: expected a trace with byte_order, got none`},
		{"a UUID", "trace { uuid = \"12\"; };", `line 1, column 9: expected a UUID of 32 hexadecimal digits, got "12"`},
		{"a string without end", "env { a = \"b\n\"; };", `line 1, column 13: expected the closing ", got the end of the line`},
		{"an escape sequence", "env { a = \"b\\q\"; };", `line 1, column 13: expected an escape sequence for one byte, got \q`},
		{"a byte that is no text", "env { a = \x01; };", `line 1, column 11: expected a token, got the byte 0x01`},
		{"a number of no base", "env { a = 089; };", `line 1, column 11: expected digits of base 8, got 089`},
		{"a number with letters after it", "env { a = 12ab; };", `line 1, column 11: expected digits of base 10, got 12ab`},
		{"a number of more than 64 bits", "env { a = 18446744073709551616; };", `line 1, column 11: expected an integer of at most 64 bits, got 18446744073709551616`},
		{"a result of more than 64 bits", "env { a = 18446744073709551615 + 1; };", `line 1, column 11: expected a number of at most 64 bits, got 18446744073709551616`},
		{"a shift", "env { a = 1 << 1000; };", `line 1, column 13: expected a shift by 0 to 128, got 1000`},
		{"a divisor", "env { a = 1 / 0; };", `line 1, column 13: expected a divisor, got 0`},
		{"a length below 0", u8 + "typedef uint8_t a[-1];", `line 2, column 19: expected the length of an array, got a number below 0`},
		{"an array of too many dimensions", u8 + "typedef uint8_t a" + strings.Repeat("[1]", 64) + "; typedef a b[1];", `line 2, column 222: expected an array of at most 64 dimensions, got more`},
		{"a range from high to low", u8 + "enum x : uint8_t { a = 3 ... 2 };", `line 2, column 24: expected a range from low to high, got 3 ... 2`},
		{"a label after the largest value", u8 + "enum x : uint8_t { a = 18446744073709551615, b };", `line 2, column 46: expected a value for the label, got none, after the largest number`},
		{"an enumeration of strings", "typealias string := text; enum x : text { a };", `line 1, column 27: expected an enumeration of an integer type, got another type`},
		{"an enumeration without type", "enum x { a };", `line 1, column 1: expected the type of an enumeration, or a type int, got none`},
		{"a field without a name", u8 + "struct x { uint8_t; };", `line 2, column 19: expected a name, got ";"`},
		{"a name that occurs twice", u8 + "struct x { uint8_t a; uint8_t a; };", `line 2, column 31: expected one field of the name a, got a second one`},
		{"a variant without options", "variant x { };", `line 1, column 1: expected a variant with options, got none`},
		{"a variant without tag", "struct x { variant { string a; } v; };", `line 1, column 34: expected a tag for the variant, got none`},
		{"fields that are no structure", "event { fields := string; };", `line 1, column 9: expected a struct for fields, got another type`},
		{"another declaration of a type", u8 + "typealias integer { size = 9; } := uint8_t;", `line 2, column 1: expected the type uint8_t as it was declared before, got another declaration`},
		{"another declaration of a type in a scope", "struct x { typealias string := a; typealias string := a; };", `line 1, column 35: expected one declaration of the type a, got a second one`},
		{"another trace", "trace { byte_order = le; }; trace { byte_order = be; };", `line 1, column 29: expected the trace as it was declared before, got another declaration`},
		{"another event", "event { id = 3; };\nevent { id = 3; name = x; };", `line 2, column 1: expected event class 3 of stream class 0 as it was declared before, got another declaration`},
		{"another environment", "env { a = 1; };\nenv { a = 2; };", `line 2, column 1: expected environment entry a as it was declared before, got another value`},
		{"a clock without name", "clock { freq = 3; };", `line 1, column 1: expected a clock with a name, got none`},
		{"a frequency", "clock { name = c; freq = 0; };", `line 1, column 19: expected a frequency above 0, got 0`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(c.text)
			require.EqualError(t, err, "metadata, "+c.want)
		})
	}
}

func TestDeclarationsMayBeRepeated(t *testing.T) {
	const text = u8 + `trace { major = 1; minor = 8; byte_order = le; };
env { a = 1; b = "x"; };
clock { name = c; };
struct s { uint8_t a; };
stream { id = 0; event.header := struct s; };
event { name = x; id = 1; fields := struct { struct s a; }; };
`
	once, err := parse(text)
	require.NoError(t, err)
	twice, err := parse(text + "/* and again */" + text)
	require.NoError(t, err)
	require.Equal(t, once, twice)
}

func TestNestingIsBounded(t *testing.T) {
	deep := func(open, end string) string {
		return strings.Repeat(open, 10_000) + strings.Repeat(end, 10_000)
	}
	for name, text := range map[string]string{
		"structures":   "struct x { " + deep("struct { ", " } a; ") + "};",
		"parentheses":  "env { a = " + deep("(", ")") + "1; };",
		"signs":        "env { a = " + deep("-", "") + "1; };",
		"declarators":  u8 + "struct x { uint8_t " + deep("(", ")") + "; };",
		"brackets":     u8 + "struct x { uint8_t a" + deep("[2]", "") + "; };",
		"paths":        u8 + "struct x { uint8_t b[a" + deep(".a", "") + "]; };",
		"enumerations": deep("enum x : ", "") + "uint8_t { a };",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, "expected", name)
	}
}
