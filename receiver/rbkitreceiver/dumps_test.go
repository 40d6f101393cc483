// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/records"
)

// uncountedDump is a message with a dump of the objects 1 and 2 as the document has it:
// without a number of objects.
func uncountedDump(number byte) []byte {
	m := []byte{0x84, 0x00, 0x07, 0x01, 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x09, number, 0x02, 0x91}
	return append(m, 0x84, 0x00, 0x05, 0x01, 0xcb, 0x40, 0x14, 0, 0, 0, 0, 0, 0, // at 5 ms
		0x0a, 0x08, 0x02, 0x92, 0x82, 0x03, 0x01, 0x08, 40, 0x82, 0x03, 0x02, 0x08, 40)
}

func TestASummaryDescribesADump(t *testing.T) {
	object := func(id, size uint64) rbkit.DumpObject {
		return rbkit.DumpObject{ID: id, Class: []byte("A"), Size: size}
	}
	dump := func(announced uint64, objects ...rbkit.DumpObject) []byte {
		return numbered(t, rbkit.Released, 1, func(c *rbkit.Collection) error { return c.Dump(5, 8, announced, objects) })
	}
	for name, c := range map[string]struct {
		message  []byte
		body     string
		severity plog.SeverityNumber
		counted  string
		want     map[string]any
		live     int64
		size     int64
	}{
		"complete": {
			message: dump(2, object(1, 40), object(2, 5<<30)), body: "Object space dump: 2 objects, 5368709160 bytes",
			severity: plog.SeverityNumberInfo, counted: "complete", live: 2, size: 5<<30 + 40,
			want: map[string]any{attributeDumpAnnounced: int64(2), attributeDumpReceived: int64(2), attributeDumpComplete: true},
		},
		"larger than numbers go": {
			message: dump(2, object(1, math.MaxUint64), object(2, 1)), body: "Object space dump: 2 objects, 9223372036854775807 bytes",
			severity: plog.SeverityNumberInfo, counted: "complete", live: 2, size: math.MaxInt64,
			want: map[string]any{attributeDumpAnnounced: int64(2), attributeDumpReceived: int64(2), attributeDumpComplete: true},
		},
		"fewer": {
			message: dump(3, object(1, 40)), body: "Object space dump, incomplete: 1 of 3 objects, 40 bytes",
			severity: plog.SeverityNumberWarn, counted: "incomplete", live: 1, size: 16,
			want: map[string]any{attributeDumpAnnounced: int64(3), attributeDumpReceived: int64(1), attributeDumpComplete: false},
		},
		"more": {
			message: dump(1, object(1, 40), object(2, 40)), body: "Object space dump with more objects than announced: 2, not 1, 80 bytes",
			severity: plog.SeverityNumberWarn, counted: "incomplete", live: 1, size: 16,
			want: map[string]any{attributeDumpAnnounced: int64(1), attributeDumpReceived: int64(2), attributeDumpComplete: false},
		},
		"not announced": {
			message: uncountedDump(1), body: "Object space dump: 2 objects, 80 bytes; the server did not say how many there are",
			severity: plog.SeverityNumberWarn, counted: "not_announced", live: 1, size: 16,
			want: map[string]any{attributeDumpReceived: int64(2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := alone(t)
			s.Begin(origin.Identity{})
			before := func(c *rbkit.Collection) error { return c.Dump(4, 7, 1, []rbkit.DumpObject{object(9, 16)}) }
			s.Receive(zmtp.Message{numbered(t, rbkit.Released, 0, before)})
			s.Receive(zmtp.Message{c.message})
			b.finish(s)
			assert.Zero(t, b.Counter("bad_messages"))
			summaries := b.Records(eventDump)
			require.Len(t, summaries, 2)
			got := summaries[1]
			assert.Equal(t, c.body, got.Body().Str())
			assert.Equal(t, c.severity, got.SeverityNumber())
			assert.Equal(t, 5*time.Millisecond, time.Duration(got.Timestamp()))
			attributes := got.Attributes().AsRaw()
			assert.EqualValues(t, 8, attributes[records.AttributeDumpID])
			for _, key := range []string{attributeDumpAnnounced, attributeDumpReceived, attributeDumpComplete} {
				assert.Equal(t, c.want[key], attributes[key], key)
			}
			assert.Contains(t, b.Points(), "dumps{objects="+c.counted+"}")
			assert.Equal(t, c.live, stateOf(s).Live.Objects[names.First], "of the last dump that was complete")
			assert.Equal(t, c.size, stateOf(s).Live.Bytes[names.First])
		})
	}
}

func TestARecordOfAnObjectNamesItsDump(t *testing.T) {
	b, s := alone(t, func(_ *bed, c *Config) { c.DumpReferences = true })
	s.Begin(origin.Identity{})
	objects := []rbkit.DumpObject{
		{ID: 20, Class: []byte("A\xff"), File: []byte("a\xff.rb"), Line: 3, Size: 40},
		{ID: 40, Class: []byte("hidden")},
		{ID: math.MaxUint64},
	}
	s.Receive(zmtp.Message{numbered(t, rbkit.Released, 0, func(c *rbkit.Collection) error { return c.Dump(7, 8, 3, objects) })})
	b.finish(s)
	got := b.Records(records.EventObject)
	require.Len(t, got, 3)
	for _, r := range got {
		assert.Equal(t, 7*time.Millisecond, time.Duration(r.Timestamp()))
		assert.Equal(t, plog.SeverityNumberDebug, r.SeverityNumber())
	}
	assert.Equal(t, map[string]any{
		records.AttributeDumpID: int64(8), "rbkit.object.id": int64(20), names.AttributeClass: "A\uFFFD", "rbkit.object.size": int64(40),
		"code.file.path": "a\uFFFD.rb", "code.line.number": int64(3),
	}, got[0].Attributes().AsRaw())
	assert.Equal(t, `"hidden"`, got[1].Body().Str(), "a class of that name, which is not hidden")
	assert.Equal(t, "hidden", got[2].Body().Str())
	id, _ := got[2].Attributes().Get("rbkit.object.id")
	assert.EqualValues(t, int64(math.MaxInt64), id.Int())
}
