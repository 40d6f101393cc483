// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Small traces of the kinds that public collections of traces have.
func TestRecordsHaveAllValuesOfATrace(t *testing.T) {
	const begin = `/* CTF 1.8 */
		trace { major = 1; minor = 8; byte_order = le; };
		typealias integer { size = 8; align = 8; } := u8;
		typealias integer { size = 16; align = 8; } := u16;
	`
	const sizes = "u8 packet_size; u8 content_size; "
	for name, c := range map[string]struct {
		metadata string
		data     []byte
		want     []map[string]any
	}{
		"a tag of a variant has a meaning of its own, unless its name shows that the tracer added it": {
			`event { name = "e"; fields := struct {
				enum : u8 { ipv4 = 4, ipv6 = 6 } protocol; variant <protocol> { u8 ipv4; string ipv6; } header;
				enum : u8 { number, text } value_tag; variant <value_tag> { u8 number; string text; } value; }; };`,
			[]byte("\x04\x07\x01x\x00" + "\x06six\x00\x00\x05"),
			[]map[string]any{
				{"protocol": "ipv4", "header": int64(7), "value": "x"},
				{"protocol": "ipv6", "header": "six", "value": int64(5)},
			},
		},
		"a label is the text that the trace has": {
			`event { name = "e"; fields := struct { enum : u8 { _on, __off } v; }; };`, []byte{0, 1},
			[]map[string]any{{"v": "_on"}, {"v": "__off"}},
		},
		"the context of the packet belongs to each event": {
			"stream { packet.context := struct { " + sizes + `u8 device; string place; }; }; event { name = "e"; fields := struct { u8 v; }; };`,
			[]byte("\x38\x38\x09a\x00" + "\x01\x02" + "\x30\x30\x0ab\x00" + "\x03"),
			[]map[string]any{
				{"device": int64(9), "place": "a", "v": int64(1)}, {"device": int64(9), "place": "a", "v": int64(2)},
				{"device": int64(10), "place": "b", "v": int64(3)},
			},
		},
		"a field and contexts with one name are attributes of their own": {
			`stream { packet.context := struct { u8 cpu_id; }; event.context := struct { u8 cpu_id; }; };
			 event { name = "e"; context := struct { u8 cpu_id; }; fields := struct { u8 cpu_id; }; };`,
			[]byte{1, 2, 3, 4},
			[]map[string]any{{
				"cpu_id": int64(4), "context.cpu_id": int64(3), "context.context.cpu_id": int64(2), "context.context.context.cpu_id": int64(1),
			}},
		},
		"an event without clock has no time, also after a damaged packet": {
			"stream { packet.context := struct { " + sizes + `}; }; event { name = "e"; fields := struct { u16 v; }; };`,
			[]byte{32, 32, 1, 0, 24, 24, 7, 32, 32, 2, 0},
			[]map[string]any{{"v": int64(1)}, {"v": int64(2)}},
		},
		"an event without clock has no time, also after discarded events": {
			"stream { packet.context := struct { " + sizes + `u8 events_discarded; }; }; event { name = "e"; fields := struct { u16 v; }; };`,
			[]byte{40, 40, 0, 1, 0, 40, 40, 9, 2, 0},
			[]map[string]any{{"v": int64(1)}, {"v": int64(2)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "metadata"), []byte(begin+c.metadata))
			writeFile(t, filepath.Join(dir, "stream"), c.data)
			var got []map[string]any
			for _, r := range readAll(t, dir).Records("e") {
				got = append(got, r.Attributes().AsRaw())
				assert.Zero(t, r.Timestamp())
			}
			assert.Equal(t, c.want, got)
		})
	}
}
