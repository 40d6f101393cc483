// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
	"github.com/callbraid/callbraid/internal/lttng/sim/usttrace"
)

// eventOf reads an event of a class with these fields from these bytes.
func eventOf(t *testing.T, fields string, content ...byte) *ctf.Reader {
	t.Helper()
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append([]byte(`/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
stream { id = 0; };
event { name = e; id = 0; stream_id = 0; fields := struct { `+fields+` }; };
`)))
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin(content))
	require.True(t, r.Next(), r.Err())
	return r
}

// A field becomes the same attribute in every form that its type allows.
func TestAFieldBecomesAnAttributeByItsType(t *testing.T) {
	u64 := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	for what, c := range map[string]struct {
		fields  string
		content []byte
		form    columnForm
		want    any
	}{
		"a small number":                     {"integer { size = 8; align = 8; } f;", []byte{200}, formNumber, int64(200)},
		"a number with sign":                 {"integer { size = 64; align = 8; signed = true; } f;", u64(1<<64 - 5), formNumber, int64(-5)},
		"a number of 63 bits":                {"integer { size = 63; align = 8; } f;", u64(1<<63 - 1), formNumber, int64(1<<63 - 1)},
		"a number without sign up to 2^63-1": {"integer { size = 64; align = 8; } f;", u64(1<<63 - 1), formUnsigned, int64(1<<63 - 1)},
		"a number without sign above 2^63-1": {"integer { size = 64; align = 8; } f;", u64(1 << 63), formUnsigned, "9223372036854775808"},
		"the largest number":                 {"integer { size = 64; align = 8; } f;", u64(1<<64 - 1), formUnsigned, "18446744073709551615"},
		"a number with a name":               {"enum : integer { size = 8; align = 8; } { RED = 3 } f;", []byte{3}, formAny, "RED"},
		"a number without a name":            {"enum : integer { size = 8; align = 8; } { RED = 3 } f;", []byte{4}, formAny, int64(4)},
		"text":                               {"string f;", []byte("h\xC3\xA9\x00"), formText, "hé"},
		"invalid UTF-8":                      {"string f;", []byte("h\xC3\x00"), formText, "h\uFFFD"},
		"an array":                           {"integer { size = 16; align = 8; signed = true; } f[2];", []byte{1, 0, 0xFF, 0xFF}, formAny, []any{int64(1), int64(-1)}},
		"a structure":                        {"struct { integer { size = 8; align = 8; } a; string b; } f;", []byte("\x07x\x00"), formOptional, map[string]any{"a": int64(7), "b": "x"}},
		"a sequence with NUL":                {"integer { size = 8; } n; integer { size = 8; align = 8; encoding = UTF8; } f[n];", []byte("\x05a\x00b\x00\x00"), formSequence, "a\x00b"},
		"an array with NUL":                  {"integer { size = 8; align = 8; encoding = UTF8; } f[5];", []byte("a\x00b\x00\x00"), formText, "a"},
		"an empty structure":                 {"struct { } f; integer { size = 8; align = 8; } g;", []byte{1}, formOptional, nil},
	} {
		t.Run(what, func(t *testing.T) {
			r := eventOf(t, c.fields, c.content...)
			column := newColumn("f", r.Event.Class.Fields.Lookup("f"), false)
			assert.Equal(t, c.form, column.form)
			attributes, known := plog.NewLogRecord().Attributes(), NewTexts()
			column.write(&known.attributes, &r.Event.Values, known, &RecordSize{most: 1 << 20})
			known.attributes.UnsafeIntoMap(attributes)
			assert.Equal(t, c.want, attributes.AsRaw()["f"])
		})
	}
}

func TestNumbersHaveTheFormsOfTheSettings(t *testing.T) {
	const fields = "enum : integer { size = 8; align = 8; } { RED = 3 } state; enum : integer { size = 8; align = 8; signed = true; } { LOW = -1 } taken; " +
		"integer { size = 8; align = 8; } taken_number; integer { size = 64; align = 8; base = 16; } addr; " +
		"integer { size = 16; align = 8; signed = true; base = x; } code; integer { size = 8; align = 8; base = 10; } n;"
	r := eventOf(t, fields, append(append([]byte{3, 0xFF, 7}, 0xF0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF), 0xFE, 0xFF, 16)...)
	write := func(records Records) map[string]any {
		records.MaxBytes = 1 << 20
		record := plog.NewLogRecord()
		NewPlan(r.Event.Class, nil, false, records).Record.Write(record, &r.Event, &r.Packet, nil, NewTexts())
		return record.Attributes().AsRaw()
	}
	want := map[string]any{"state": "RED", "taken": "LOW", "taken_number": int64(7), "addr": "18446744073709551600", "code": int64(-2), "n": int64(16)}
	assert.Equal(t, want, write(Records{}))
	want["state_number"] = int64(3)
	assert.Equal(t, want, write(Records{EnumerationNumbers: true}))
	want["addr"], want["code"] = "0xfffffffffffffff0", "0xfffe"
	assert.Equal(t, want, write(Records{EnumerationNumbers: true, Hexadecimal: true}))
}

// A record allocates only the memory that its library needs to store it: as much as a copy of it.
func TestALogRecordAllocatesAsMuchAsItsCopy(t *testing.T) {
	dir := t.TempDir()
	_, err := usttrace.Write(dir, usttrace.Options{Events: 2000, Contexts: true})
	require.NoError(t, err)
	seen := map[string]int{}
	source, err := lttngrelay.FromDirectory(dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, source.Close()) })
	forEachEvent(t, source.Recordings[0], func(p *Plan, e *ctf.Event, packet *ctf.Packet) {
		record := p.Record
		made := plog.NewLogRecord()
		record.Write(made, e, packet, nil, NewTexts())
		copied := allocations(func() func() { return func() { made.CopyTo(plog.NewLogRecord()) } })
		for _, value := range made.Attributes().All() {
			if value.Type() == pcommon.ValueTypeBytes && value.Bytes().Len() > 0 {
				copied++ // copies share their bytes
			}
		}
		written := allocations(func() func() {
			// Two texts of the record may share a place in the table by chance, so each is converted every time. This
			// cannot happen in all tables.
			known := NewTexts()
			return func() { record.Write(plog.NewLogRecord(), e, packet, nil, known) }
		})
		assert.LessOrEqual(t, written, copied, "%s: %v", e.Class.Name, made.Attributes().AsRaw())
		seen[e.Class.Name]++
	})
	for _, name := range []string{EventCygEntry, EventCygExit, usttrace.ProviderWork + ":request", usttrace.ProviderWork + ":samples"} {
		assert.NotZero(t, seen[name], name)
	}
}

// allocations returns the number of allocations in the second call of functions from prepare. The figures include
// those of the whole process, and other goroutines can only add some. So the least of some tries is the function's
// own.
func allocations(prepare func() func()) float64 {
	least := testing.AllocsPerRun(1, prepare())
	for range 4 {
		least = min(least, testing.AllocsPerRun(1, prepare()))
	}
	return least
}
