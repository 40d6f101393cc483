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

// recordCTF2 returns the attributes of an event in CTF 2 with these members and bytes.
func recordCTF2(t *testing.T, members string, content ...byte) map[string]any {
	t.Helper()
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append([]byte("\x1e"+`{"type": "preamble", "version": 2}`+
		"\x1e"+`{"type": "trace-class"}`+
		"\x1e"+`{"type": "data-stream-class", "id": 0}`+
		"\x1e"+`{"type": "event-record-class", "id": 0, "data-stream-class-id": 0, "name": "e", "payload-field-class": {"type": "structure", "member-classes": [`+members+`]}}`)))
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin(content))
	require.True(t, r.Next(), r.Err())
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

func TestABLOBBecomesBytes(t *testing.T) {
	assert.Equal(t, map[string]any{"image": []byte{1, 0, 2}, "seq": []byte{0, 255}}, recordCTF2(t,
		`{"name": "image", "field-class": {"type": "static-length-blob", "length": 3, "media-type": "image/png"}},
		 {"name": "_seq_length", "field-class": `+classByte+`},
		 {"name": "seq", "field-class": {"type": "dynamic-length-blob", `+classOfLength+`, "media-type": "application/octet-stream"}}`,
		1, 0, 2, 2, 0, 255))
}
