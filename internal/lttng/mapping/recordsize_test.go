// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// members declares n numbers of a bit.
func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "integer { size = 1; } m%d; ", i)
	}
	return b.String()
}

// A value that is too large for a record is omitted and counted. The other values are in the record.
func TestARecordIsBoundedForAnyEvent(t *testing.T) {
	for _, most := range []int{16 << 10, 1 << 20} {
		t.Run(strconv.Itoa(most), func(t *testing.T) { requireBoundedRecords(t, most) })
	}
}

func requireBoundedRecords(t *testing.T, most int) {
	text := func(n int) []byte { return append([]byte(strings.Repeat("x", n)), 0) }
	for what, c := range map[string]struct {
		fields  string
		content []byte
		leftOut int
		// attributes is the number of attributes besides that of the last byte.
		attributes int
	}{
		"a text that fits": {"string f;", text(most / 2), 0, 1},
		"two texts that do not fit together": {
			"string f; string g;", append(text(most/2), text(most/2)...), 1, 1,
		},
		"an array":           {"integer { size = 1; } f[200000];", make([]byte, 200000/8), 1, 0},
		"an array of arrays": {"struct { integer { size = 1; } n; integer { size = 1; } a[1000]; } f[200];", make([]byte, 1001*200/8), 1, 0},
		"an array of texts":  {"string f[100];", slices.Repeat(text(most/50), 100), 1, 0},
		"bytes":              {fmt.Sprintf("integer { size = 8; align = 8; } f[%d];", most), make([]byte, most), 1, 0},
		"a text in a structure in an option": {
			"enum : integer { size = 8; } { s = 0 } f_tag; variant <f_tag> { struct { string x; } s; } f;", append([]byte{0}, text(most)...), 1, 0,
		},
		"a structure of many members": {"struct { " + members(maxAttributes+8) + "} f;", make([]byte, (maxAttributes+8)/8), 1, 0},
		"many fields":                 {members(maxAttributes + 7), make([]byte, (maxAttributes+8)/8), 8, maxAttributes},
		"a name":                      {"string " + strings.Repeat("f", MaxNameBytes+1) + ";", text(1), 1, 0},
	} {
		t.Run(what, func(t *testing.T) {
			r := eventOf(t, c.fields+" integer { size = 8; } last;", append(c.content, 7)...)
			record := NewPlan(r.Event.Class, nil, false, Records{MaxBytes: most}).Record
			made := plog.NewLogRecord()
			size := record.Write(made, &r.Event, &ctf.Packet{}, nil, NewTexts())
			assert.Equal(t, c.leftOut, size.LeftOut)
			assert.EqualValues(t, c.leftOut, made.DroppedAttributesCount())
			assert.LessOrEqual(t, size.Bytes, most+maxAttributes*valueBytes)
			attributes := made.Attributes().AsRaw()
			if what != "many fields" {
				assert.EqualValues(t, 7, attributes["last"])
				c.attributes++
			}
			assert.Len(t, attributes, c.attributes)
			assert.Equal(t, "e", made.EventName())
		})
	}
}

// TestARecordMayFillItsBound: to the byte.
func TestARecordMayFillItsBound(t *testing.T) {
	for _, most := range []int{16 << 10, 1 << 20} {
		for _, more := range []int{0, 1} {
			plain := NewPlan(eventOf(t, "string f;", 0).Event.Class, nil, false, Records{MaxBytes: most}).Record
			text := strings.Repeat("x", most-plain.bytes+more)
			r := eventOf(t, "string f;", append([]byte(text), 0)...)
			made := plog.NewLogRecord()
			size := NewPlan(r.Event.Class, nil, false, Records{MaxBytes: most}).Record.Write(made, &r.Event, &ctf.Packet{}, nil, NewTexts())
			assert.Equal(t, more, size.LeftOut)
			assert.Equal(t, 1-more, made.Attributes().Len())
		}
	}
}

// Names of attributes are in the record as well.
func TestNamesOfAttributesCountForTheBound(t *testing.T) {
	const names = 300
	var fields strings.Builder
	for i := range names {
		fmt.Fprintf(&fields, "integer { size = 8; } f%d%s; ", i, strings.Repeat("x", MaxNameBytes-10))
	}
	for _, most := range []int{16 << 10, 1 << 20} {
		r := eventOf(t, fields.String(), make([]byte, names)...)
		made := plog.NewLogRecord()
		size := NewPlan(r.Event.Class, nil, false, Records{MaxBytes: most}).Record.Write(made, &r.Event, &ctf.Packet{}, nil, NewTexts())
		bytes := 0
		for key := range made.Attributes().All() {
			bytes += len(key)
		}
		assert.LessOrEqual(t, bytes, most)
		assert.Greater(t, bytes, most/2)
		assert.Equal(t, names-made.Attributes().Len(), size.LeftOut)
	}
}
