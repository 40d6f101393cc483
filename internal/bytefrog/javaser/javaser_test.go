// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javaser

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/javaser/jvmtest"
)

// configuration returns the object of the captures: it has primitives and two lists.
func configuration(runID, heartbeat, memory, retries, connections int, exclusions, inclusions []string) Object {
	return Object{
		Class:            "com.secdec.bytefrog.common.config.RuntimeAgentConfigurationV1",
		SerialVersionUID: -4660117618158655806,
		Fields: []Field{
			{"bufferMemoryBudget", TypeInt, Int(memory)},
			{"heartbeatInterval", TypeInt, Int(heartbeat)},
			{"numDataSenders", TypeInt, Int(connections)},
			{"queueRetryCount", TypeInt, Int(retries)},
			{"runId", TypeByte, Byte(runID)},
			{"exclusions", TypeList, ArrayList(exclusions)},
			{"inclusions", TypeList, ArrayList(inclusions)},
		},
	}
}

var serialised = map[string]Object{
	"shop.ser": configuration(1, 500, 1<<20, 10, 2,
		[]string{"^java/", "^sun/", "^org/objectweb/", "^jdk/"}, []string{"^demo/"}),
	"maven.ser": configuration(9, 250, 4<<20, 10, 3,
		[]string{""}, []string{"^org/apache/maven", "^org/codehaus/plexus"}),
}

func TestObjectsWrittenByAJVM(t *testing.T) {
	for name, o := range serialised {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile("testdata/bytefrog/" + name)
			require.NoError(t, err)

			got, err := Marshal(o)
			require.NoError(t, err)
			assert.Equal(t, want, got)

			read, err := Unmarshal(want)
			require.NoError(t, err)
			assert.Equal(t, o, read)

			// The order of the fields in the input does not matter.
			o.Fields = slices.Clone(o.Fields)
			slices.Reverse(o.Fields)
			got, err = Marshal(o)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

// allTypes returns an object of the class AllTypes of testdata, with its fields in the order of the stream.
func allTypes(n int64, f float64, b bool, s, other, list, object Value) Object {
	return Object{
		Class:            "callbraid.AllTypes",
		SerialVersionUID: 1234567890123456789,
		Fields: []Field{
			{"aBoolean", TypeBoolean, Boolean(b)},
			{"aByte", TypeByte, Byte(n)},
			{"aChar", TypeChar, Char(n)},
			{"aDouble", TypeDouble, Double(f)},
			{"aFloat", TypeFloat, Float(f)},
			{"aLong", TypeLong, Long(n)},
			{"aShort", TypeShort, Short(n)},
			{"anInt", TypeInt, Int(n)},
			{"aList", TypeList, list},
			{"aString", TypeString, s},
			{"anObject", "Ljava/lang/Object;", object},
			{"anotherString", TypeString, other},
		},
	}
}

func allTypesCases() []Object {
	return []Object{
		allTypes(0, 0, false, nil, nil, nil, nil),
		allTypes(1, -1.5, true, String("a"), String("b"), ArrayList{"c"}, String("d")),
		allTypes(math.MaxInt64, math.MaxFloat64, true, String("same"), String("same"), ArrayList{"same", "same"}, String("same")),
		allTypes(math.MinInt64, math.Inf(-1), false, String(""), nil, ArrayList{}, ArrayList{"x", ""}),
		allTypes(-128, math.SmallestNonzeroFloat64, true, String(TypeString), String("java.util.ArrayList"), ArrayList{TypeList}, nil),
		allTypes(65, 0.1, true, String(strings.Repeat("x", 65535)), String(strings.Repeat("y", 65536)), ArrayList{strings.Repeat("z", 70000)}, nil),
	}
}

func TestWrittenObjectsAreReadBack(t *testing.T) {
	for i, o := range allTypesCases() {
		b, err := Marshal(o)
		require.NoError(t, err)
		got, err := Unmarshal(b)
		require.NoError(t, err)
		assert.Equal(t, o, got, "case %d", i)
	}
}

func TestAJVMReadsAndWritesTheSame(t *testing.T) {
	var sent []byte
	var want strings.Builder
	show := func(f Field) string {
		switch v := f.Value.(type) {
		case nil:
			return "null"
		case ArrayList:
			return "[" + strings.Join(v, ", ") + "]"
		default:
			return fmt.Sprint(v)
		}
	}
	for _, o := range allTypesCases() {
		data, err := Marshal(o)
		require.NoError(t, err)
		sent = binary.BigEndian.AppendUint32(sent, uint32(len(data)))
		sent = append(sent, data...)

		f := o.Fields
		fmt.Fprintln(&want, f[1].Value, f[2].Value, int64(math.Float64bits(float64(f[3].Value.(Double)))),
			int32(math.Float32bits(float32(f[4].Value.(Float)))), f[7].Value, f[5].Value, f[6].Value, f[0].Value)
		fmt.Fprintln(&want, show(f[9]), show(f[11]), show(f[8]), show(f[10]))
		fmt.Fprintf(&want, "%X\n", data)
	}
	got := string(jvmtest.Run(t, "testdata/java", "callbraid.ReadAllTypes", sent))
	wantLines, gotLines := strings.Split(want.String(), "\n"), strings.Split(got, "\n")
	require.Len(t, gotLines, len(wantLines))
	for i := range wantLines {
		require.True(t, wantLines[i] == gotLines[i], "line %d: expected %.2000s, got %.2000s", i+1, wantLines[i], gotLines[i])
	}
}

func TestInvalidObjectsAreNotWritten(t *testing.T) {
	object := func(fields ...Field) Object { return Object{Class: "a.B", Fields: fields} }
	cases := []struct {
		name string
		o    Object
		text string
	}{
		{"no class", Object{}, `class "": expected a class name, got none`},
		{"a class name that is not UTF-8", Object{Class: "\xFF"}, `class "\xff": expected a class name in UTF-8, got "\xff"`},
		{"a list as the object", Object{Class: "java.util.ArrayList"}, `class "java.util.ArrayList": expected another class than java.util.ArrayList: lists are written only as values`},
		{"no field name", object(Field{"", TypeInt, Int(1)}), `class "a.B": field "": expected a name, got none`},
		{"one name twice", object(Field{"x", TypeInt, Int(1)}, Field{"x", TypeInt, Int(2)}), `class "a.B": field "x": expected each name once, got it again`},
		{"a field without a type", object(Field{"x", "", Int(1)}), `class "a.B": field "x": expected a type, got none`},
		{"a type of another kind", object(Field{"x", "[I", nil}), `class "a.B": field "x": expected the descriptor of a primitive or class type, got "[I"`},
		{"a long in an int", object(Field{"x", TypeInt, Long(1)}), `class "a.B": field "x": expected a value of type "I", got javaser.Long`},
		{"null in an int", object(Field{"x", TypeInt, nil}), `class "a.B": field "x": expected a value of type "I", got <nil>`},
		{"an int in a String", object(Field{"x", TypeString, Int(1)}), `class "a.B": field "x": expected a value of type "Ljava/lang/String;", got javaser.Int`},
		{"a list in an int", object(Field{"x", TypeInt, ArrayList{}}), `class "a.B": field "x": expected a value of type "I", got javaser.ArrayList`},
		{"too many fields", object(make([]Field, 1<<15)...), `class "a.B": expected at most 32767 fields, got 32768`},
		{"a name that is too long", object(Field{strings.Repeat("é", 1<<15), TypeInt, Int(1)}), fmt.Sprintf(`class "a.B": field %q: expected a name of at most 65535 bytes, got 65536`, strings.Repeat("é", 1<<15))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, err := Marshal(c.o)
			assert.EqualError(t, err, c.text)
			assert.Nil(t, b)
		})
	}
}

func TestFieldByName(t *testing.T) {
	o := serialised["shop.ser"]
	f, ok := o.Field("runId")
	assert.True(t, ok)
	assert.Equal(t, Field{"runId", TypeByte, Byte(1)}, f)
	_, ok = o.Field("runid")
	assert.False(t, ok)
}

// stream builds a stream: strings are written with their 16-bit length, other parts as bytes.
func stream(parts ...any) []byte {
	b := []byte{0xAC, 0xED, 0, 5}
	for _, part := range parts {
		switch part := part.(type) {
		case int:
			b = append(b, byte(part))
		case rune:
			b = append(b, byte(part))
		case uint32:
			b = binary.BigEndian.AppendUint32(b, part)
		case string:
			b = binary.BigEndian.AppendUint16(b, uint16(len(part)))
			b = append(b, part...)
		case []any:
			b = append(b, stream(part...)[4:]...)
		default:
			panic(fmt.Sprintf("part of a stream: expected bytes, uint32 or string, got %T", part))
		}
	}
	return b
}

var (
	uid = []any{uint32(0), uint32(1)}
	// list is the class ArrayList at its first use.
	list = []any{0x72, "java.util.ArrayList", uint32(0x7881D21D), uint32(0x99C7619D), 3, 0, 1, 'I', "size", 0x78, 0x70}
	// front is an object with one field of a class type, up to its value.
	front = []any{0x73, 0x72, "a.B", uid, 2, 0, 1, 'L', "x", 0x74, "Ljava/util/List;", 0x78, 0x70}
)

func TestOtherValidStreamsAreRead(t *testing.T) {
	value := func(v Value) Object {
		return Object{Class: "a.B", SerialVersionUID: 1, Fields: []Field{{"x", "Ljava/util/List;", v}}}
	}
	cases := []struct {
		name string
		b    []byte
		want Object
	}{
		{"an object without fields", stream(0x73, 0x72, "a.B", uid, 2, 0, 0, 0x78, 0x70), Object{Class: "a.B", SerialVersionUID: 1}},
		{"null", stream(front, 0x70), value(nil)},
		{"a reference to the field's type", stream(front, 0x71, uint32(0x7E0001)), value(String("Ljava/util/List;"))},
		{"an empty list", stream(front, 0x73, list, uint32(0), 0x77, 4, uint32(10), 0x78), value(ArrayList{})},
		{"equal strings twice", stream(front, 0x73, list, uint32(2), 0x77, 4, uint32(2), 0x74, "s", 0x74, "s", 0x78), value(ArrayList{"s", "s"})},
		{"a reference to a string", stream(front, 0x73, list, uint32(2), 0x77, 4, uint32(2), 0x74, "s", 0x71, uint32(0x7E0005), 0x78), value(ArrayList{"s", "s"})},
		{"a long string that is short", stream(front, 0x7C, uint32(0), uint32(2), 0x61, 0x62), value(String("ab"))},
		{
			"one list in two fields, and fields in another order",
			stream(0x73, 0x72, "a.B", uid, 2, 0, 3, 'L', "y", 0x74, "Ljava/util/List;", 'L', "x", 0x71, uint32(0x7E0001), 'Z', "b", 0x78, 0x70,
				0x73, list, uint32(1), 0x77, 4, uint32(1), 0x74, "s", 0x78, 0x71, uint32(0x7E0004), 7),
			Object{Class: "a.B", SerialVersionUID: 1, Fields: []Field{
				{"y", TypeList, ArrayList{"s"}}, {"x", TypeList, ArrayList{"s"}}, {"b", TypeBoolean, Boolean(true)},
			}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Unmarshal(c.b)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestInvalidStreamsAreErrors(t *testing.T) {
	cases := []struct {
		name string
		b    []byte
		text string
	}{
		{"no magic", []byte("PK\x03\x04"), "byte 0: expected stream magic 0xACED, got 0x504B"},
		{"another version", []byte{0xAC, 0xED, 0, 4, 0x73}, "byte 2: expected stream version 0x0005, got 0x0004"},
		{"no object", stream(), "byte 4: expected an object (1 bytes), got the end of the stream after 0"},
		{"a string as the object", stream(0x74, "s"), "byte 4: expected an object (0x73), got 0x74"},
		{"an object without a class", stream(0x73, 0x70), "byte 5: expected a class, got type code 0x70"},
		{"a proxy", stream(0x73, 0x7D), "byte 5: expected a class, got type code 0x7D"},
		{"a class without a name", stream(0x73, 0x72, ""), "byte 6: expected a class name, got an empty one"},
		{"a class that writes its own data", stream(0x73, 0x72, "a.B", uid, 3, 0, 0, 0x78, 0x70), `byte 5: expected a Serializable class without data of its own, got class "a.B" with flags 0x03`},
		{"an enum", stream(0x73, 0x72, "a.B", uid, 0x12, 0, 0, 0x78, 0x70), `byte 5: expected a Serializable class without data of its own, got class "a.B" with flags 0x12`},
		{"a list as the object", stream(0x73, list), `byte 5: expected a Serializable class without data of its own, got class "java.util.ArrayList" with flags 0x03`},
		{"a superclass", stream(0x73, 0x72, "a.B", uid, 2, 0, 0, 0x78, 0x72), "byte 23: expected no superclass (0x70), got 0x72"},
		{"an annotation", stream(0x73, 0x72, "a.B", uid, 2, 0, 0, 0x77), "byte 22: expected no class annotation (0x78), got 0x77"},
		{"an array", stream(0x73, 0x72, "a.B", uid, 2, 0, 1, '[', "x"), "byte 22: expected a primitive or class type, got field type 0x5B"},
		{"a field without a name", stream(0x73, 0x72, "a.B", uid, 2, 0, 1, 'I', ""), "byte 23: expected a field name, got an empty one"},
		{"one field twice", stream(0x73, 0x72, "a.B", uid, 2, 0, 2, 'I', "x", 'I', "x"), `byte 26: expected each field once, got field "x" again`},
		{"more fields than a class has", stream(0x73, 0x72, "a.B", uid, 2, 0x80, 0), "byte 20: expected at most 32767 fields, got 32768"},
		{"a field type that is null", stream(0x73, 0x72, "a.B", uid, 2, 0, 1, 'L', "x", 0x70), "byte 26: expected the descriptor of a class type, got null"},
		{"a field type that is no class", stream(0x73, 0x72, "a.B", uid, 2, 0, 1, 'L', "x", 0x74, "I"), `byte 26: expected the descriptor of a class type, got the string "I"`},
		{"a value of an unknown kind", stream(front, 0x7E), "byte 47: expected null, a string, a list, or a reference to one, got type code 0x7E"},
		{"a reference to a later element", stream(front, 0x71, uint32(0x7E0003)), "byte 48: expected one of the 3 handles from 0x7E0000, got 0x7E0003"},
		{"a reference below all handles", stream(front, 0x71, uint32(1)), "byte 48: expected one of the 3 handles from 0x7E0000, got 0x1"},
		{"a reference to a class", stream(front, 0x71, uint32(0x7E0000)), "byte 48: expected the handle of a string or list, got 0x7E0000, which is something else"},
		{"a reference to the object itself", stream(front, 0x71, uint32(0x7E0002)), "byte 48: expected the handle of a string or list, got 0x7E0002, which is something else"},
		{"a string as a class", stream(front, 0x73, 0x71, uint32(0x7E0001)), "byte 49: expected the handle of a class, got 0x7E0001, which is something else"},
		{"another class as value", stream(front, 0x73, 0x71, uint32(0x7E0000)), `byte 48: expected the class java.util.ArrayList as Java declares it, got class "a.B"`},
		{"a list larger than the stream", stream(front, 0x73, list, uint32(0x7FFFFFFF), 0x77, 4, uint32(1), 0x78), "byte 90: expected a size that the 1 bytes that follow can hold, got 2147483647"},
		{"a list of negative size", stream(front, 0x73, list, uint32(0xFFFFFFFF), 0x77, 4, uint32(1), 0x78), "byte 90: expected a size that the 1 bytes that follow can hold, got -1"},
		{"a list without capacity", stream(front, 0x73, list, uint32(0), 0x78), "byte 94: expected the capacity of a list (0x77), got 0x78"},
		{"a list with more block data", stream(front, 0x73, list, uint32(0), 0x77, 5), "byte 95: expected four bytes of capacity (0x04), got 0x05"},
		{"null in a list", stream(front, 0x73, list, uint32(1), 0x77, 4, uint32(1), 0x70, 0, 0), "byte 100: expected a string as element of a list, got null"},
		{"a list in a list", stream(front, 0x73, list, uint32(1), 0x77, 4, uint32(1), 0x73, 0x71, uint32(0x7E0003), uint32(0), 0x77, 4, uint32(0), 0x78), "byte 100: expected a string as element of a list, got a list"},
		{"a list that holds itself", stream(front, 0x73, list, uint32(1), 0x77, 4, uint32(1), 0x71, uint32(0x7E0004)), "byte 101: expected the handle of a string or list, got 0x7E0004, which is something else"},
		{"a list with more elements than its size", stream(front, 0x73, list, uint32(0), 0x77, 4, uint32(1), 0x74, "s", 0x78), "byte 100: expected the end of a list (0x78), got 0x74"},
		{"a string longer than the stream", stream(front, 0x7C, uint32(0xFFFFFFFF), uint32(0xFFFFFFFF)), "byte 48: expected a length of at most the 0 bytes that follow, got 18446744073709551615"},
		{"a string that is not modified UTF-8", stream(front, 0x74, "ab\xFF"), "byte 50: expected a string in modified UTF-8, got byte 2: expected a character in modified UTF-8, got FF"},
		{"something behind the object", stream(front, 0x70, 0x70), "byte 48: expected the end of the stream, got 1 more bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Unmarshal(c.b)
			assert.EqualError(t, err, c.text)
		})
	}
}

func TestEachTruncatedStreamIsAnError(t *testing.T) {
	for _, o := range allTypesCases()[:5] {
		b, err := Marshal(o)
		require.NoError(t, err)
		for end := range b {
			_, err := Unmarshal(b[:end])
			var serError *Error
			require.ErrorAs(t, err, &serError, "with %d of %d bytes", end, len(b))
			require.LessOrEqual(t, serError.Offset, end)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for name := range serialised {
		b, err := os.ReadFile("testdata/bytefrog/" + name)
		require.NoError(f, err)
		f.Add(b)
	}
	for _, o := range allTypesCases()[:5] {
		b, err := Marshal(o)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add(stream(front, 0x73, list, uint32(2), 0x77, 4, uint32(2), 0x74, "s", 0x71, uint32(0x7E0005), 0x78))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := Unmarshal(b)
		if err != nil {
			return
		}
		o.Fields = sortFields(o.Fields)
		again, err := Marshal(o)
		if err != nil {
			t.Fatalf("read %+v, which cannot be written: %v", o, err)
		}
		got, err := Unmarshal(again)
		if err != nil || !reflect.DeepEqual(withoutNaN(o), withoutNaN(got)) {
			t.Fatalf("expected %+v again, got %+v, error %v", o, got, err)
		}
	})
}

// withoutNaN replaces NaN, because NaN is not equal to itself.
func withoutNaN(o Object) Object {
	for i := range o.Fields {
		switch v := o.Fields[i].Value.(type) {
		case Double:
			o.Fields[i].Value = Long(math.Float64bits(float64(v)))
		case Float:
			o.Fields[i].Value = Int(math.Float32bits(float32(v)))
		}
	}
	return o
}
