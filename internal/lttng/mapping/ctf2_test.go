// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// Field classes of CTF 2, as LTTng 2.15 and 2.16 write them.
const (
	classByte     = `{"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian", "alignment": 8, "preferred-display-base": 10}`
	classOfLength = `"length-field-location": {"origin": "event-record-payload", "path": ["_seq_length"]}`
)

// eventCTF2 reads an event in CTF 2 with these members from these bytes.
func eventCTF2(t *testing.T, members string, content ...byte) *ctf.Reader {
	t.Helper()
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append([]byte("\x1e"+`{"type": "preamble", "version": 2}`+
		"\x1e"+`{"type": "trace-class"}`+
		"\x1e"+`{"type": "data-stream-class", "id": 0}`+
		"\x1e"+`{"type": "event-record-class", "id": 0, "data-stream-class-id": 0, "name": "e", "payload-field-class": {"type": "structure", "member-classes": [`+members+`]}}`)))
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin(content))
	require.True(t, r.Next(), r.Err())
	return r
}

// recordCTF2 returns the attributes of an event in CTF 2 with these members and bytes.
func recordCTF2(t *testing.T, members string, content ...byte) map[string]any {
	t.Helper()
	r := eventCTF2(t, members, content...)
	record := plog.NewLogRecord()
	NewPlan(r.Event.Class, nil, false, Records{MaxBytes: 1 << 20}).Record.Write(record, &r.Event, &r.Packet, nil, NewTexts())
	return record.Attributes().AsRaw()
}

// LTTng calls the length of a sequence seq _seq_length. A program can have a field seq_length.
func TestOnlyTheLengthOfASequenceIsLeftOut(t *testing.T) {
	assert.Equal(t, map[string]any{"seq": []any{int64(5), int64(6)}, "seq_length": int64(9)}, recordCTF2(t,
		`{"name": "seq_length", "field-class": `+classByte+`}, {"name": "_seq_length", "field-class": `+classByte+`},
		 {"name": "seq", "field-class": {"type": "dynamic-length-array", `+classOfLength+`, "element-field-class":
		  {"type": "fixed-length-unsigned-integer", "length": 16, "byte-order": "little-endian", "alignment": 8}}}`,
		9, 2, 5, 0, 6, 0))

	r := eventOf(t, "integer { size = 8; } _seq_length; integer { size = 8; } __seq_length; integer { size = 16; align = 8; } _seq[__seq_length];", 9, 2, 5, 0, 6, 0)
	record := plog.NewLogRecord()
	NewPlan(r.Event.Class, nil, false, Records{MaxBytes: 1 << 20}).Record.Write(record, &r.Event, &r.Packet, nil, NewTexts())
	assert.Equal(t, map[string]any{"seq": []any{int64(5), int64(6)}, "seq_length": int64(9)}, record.Attributes().AsRaw())
}

// CTF 2 allows every name. Two attributes of a record never have the same one.
func TestAFieldDoesNotHaveTheNameOfAnotherAttribute(t *testing.T) {
	const fields = `{"name": "thread.id", "field-class": ` + classByte + `}, {"name": "state", "field-class":
		{"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian", "alignment": 8, "mappings": {"RED": [[3, 3]]}}},
		{"name": "inner", "field-class": {"type": "structure", "member-classes": []}}, {"name": "code.line.number", "field-class": ` + classByte + `}`
	r := eventCTF2(t, fields, 7, 3, 9)
	for _, c := range []struct {
		isKernel bool
		want     map[string]any
	}{
		{false, map[string]any{"thread.id": int64(7), "state": "RED", "code.line.number": int64(9)}},
		{true, map[string]any{"context.thread.id": int64(7), "state": "RED", "code.line.number": int64(9), "thread.id": int64(4711), "thread.name": "worker-1"}},
	} {
		record, known := plog.NewLogRecord(), NewTexts()
		var thread *Thread
		if c.isKernel {
			shown := NewThread(4711, "worker-1")
			thread = &shown
		}
		NewPlan(r.Event.Class, nil, c.isKernel, Records{MaxBytes: 1 << 20}).Record.Write(record, &r.Event, &r.Packet, thread, known)
		assert.Equal(t, c.want, record.Attributes().AsRaw())
		assert.Equal(t, len(c.want), record.Attributes().Len())
	}
}

// The number of an enumeration has a name of its own, which a context can have, too.
func TestAContextDoesNotHaveTheNameOfANumber(t *testing.T) {
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append([]byte(`/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
stream { id = 0; event.context := struct { integer { size = 8; align = 8; } state_number; }; };
event { name = e; id = 0; stream_id = 0; fields := struct { enum : integer { size = 8; align = 8; } { RED = 3 } state; }; };
`)))
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin([]byte{5, 3}))
	require.True(t, r.Next(), r.Err())
	record := plog.NewLogRecord()
	NewPlan(r.Event.Class, nil, false, Records{MaxBytes: 1 << 20, EnumerationNumbers: true}).Record.Write(record, &r.Event, &r.Packet, nil, NewTexts())
	assert.Equal(t, map[string]any{"state": "RED", "state_number": int64(3), "context.state_number": int64(5)}, record.Attributes().AsRaw())
}

func TestABLOBBecomesBytes(t *testing.T) {
	assert.Equal(t, map[string]any{"image": []byte{1, 0, 2}, "seq": []byte{0, 255}}, recordCTF2(t,
		`{"name": "image", "field-class": {"type": "static-length-blob", "length": 3, "media-type": "image/png"}},
		 {"name": "_seq_length", "field-class": `+classByte+`},
		 {"name": "seq", "field-class": {"type": "dynamic-length-blob", `+classOfLength+`, "media-type": "application/octet-stream"}}`,
		1, 0, 2, 2, 0, 255))
}
