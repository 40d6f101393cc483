// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// logLevelNames are LTTng's names as babeltrace prints them.
var logLevelNames = []string{
	"EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG_SYSTEM", "DEBUG_PROGRAM",
	"DEBUG_PROCESS", "DEBUG_MODULE", "DEBUG_UNIT", "DEBUG_FUNCTION", "DEBUG_LINE", "DEBUG",
}

// hidden are the fields of the packet context that babeltrace does not print.
var hidden = map[string]bool{
	"timestamp_begin": true, "timestamp_end": true, "content_size": true, "packet_size": true,
	"packet_seq_num": true, "events_discarded": true,
}

// renderer writes values as babeltrace 1 prints them, or as babeltrace2 does, which omits the names of options.
type renderer struct {
	strings.Builder
	bare bool
}

// rendered returns the last event of a reader as babeltrace 1 prints it with all names, but without the name of the
// trace's directory.
func rendered(r *ctf.Reader) string {
	e := &r.Event
	trace := e.Class.Stream.Trace
	b := &renderer{}
	fmt.Fprintf(b, "timestamp = %s, ", time.Unix(0, e.UnixNano()).UTC().Format("15:04:05.000000000"))
	fmt.Fprintf(b, "trace:hostname = %s, trace:domain = %s, ", trace.Env("hostname"), trace.Env("domain"))
	if m := e.Class.Meta; m.HasLogLevel {
		fmt.Fprintf(b, "loglevel = TRACE_%s (%d), ", logLevelNames[m.LogLevel], m.LogLevel)
	}
	fmt.Fprintf(b, "name = %s", e.Class.Name)
	b.scope("stream.packet.context", &r.Packet.Values, e.Class.Stream.PacketContext)
	if len(e.Class.Stream.EventCommonContext.Members) > 0 {
		b.scope("stream.event.context", &e.Values, e.Class.Stream.EventCommonContext)
	}
	if len(e.Class.Context.Members) > 0 {
		b.scope("event.context", &e.Values, e.Class.Context)
	}
	b.scope("event.fields", &e.Values, e.Class.Fields)
	return b.String()
}

func (b *renderer) scope(name string, v *ctf.Values, f *ctf.Field) {
	fmt.Fprintf(b, ", %s = ", name)
	b.field(v, f)
}

// field writes the value of a field.
func (b *renderer) field(v *ctf.Values, f *ctf.Field) {
	switch f.Kind {
	case ctf.Uint:
		b.integer(f.Type.(*metadata.Integer), metadata.Unsigned(v.Uint(f)))
	case ctf.Int:
		b.integer(f.Type.(*metadata.Integer), metadata.Signed(v.Int(f)))
	case ctf.Float:
		fmt.Fprintf(b, "%s", strconv.FormatFloat(v.Float(f), 'g', 6, 64))
	case ctf.Text:
		fmt.Fprintf(b, `"%s"`, v.AppendText(nil, f)) // without escapes
	case ctf.Bytes:
		b.bytes(v, f)
	case ctf.Struct:
		b.list("{", "}", len(f.Members), func(i int, b *renderer) bool {
			m := f.Members[i]
			if f.Scope == metadata.PacketContext && hidden[m.Name] {
				return false
			}
			fmt.Fprintf(b, "%s = ", m.Name)
			b.field(v, m)
			return true
		})
	case ctf.Variant:
		b.WriteString("{ ")
		if option := v.Option(f); option != nil {
			if !b.bare {
				fmt.Fprintf(b, "%s = ", option.Name)
			}
			b.field(v, option)
		}
		b.WriteString(" }")
	case ctf.Optional:
		if option := v.Option(f); option != nil {
			b.field(v, option)
		} else {
			b.WriteString("<none>")
		}
	case ctf.Array:
		b.list("[", "]", v.Len(f), func(i int, b *renderer) bool {
			fmt.Fprintf(b, "[%d] = ", i)
			element := v.Element(f, i)
			b.field(&element, f.Members[0])
			return true
		})
	}
}

// list writes items separated by commas. If one returns false, its item is omitted.
func (b *renderer) list(open, end string, n int, one func(int, *renderer) bool) {
	var items []string
	for i := range n {
		item := &renderer{bare: b.bare}
		if one(i, item) {
			items = append(items, item.String()+" ")
		}
	}
	text := strings.ReplaceAll(strings.Join(items, "\x00"), " \x00", ", ")
	b.WriteString(open + " " + text + end)
}

// bytes writes an array of integers of 8 bits.
func (b *renderer) bytes(v *ctf.Values, f *ctf.Field) {
	element := &metadata.Integer{Size: 8, Base: 16}
	if array, ok := f.Type.(*metadata.Array); ok {
		element = array.Element.(*metadata.Integer)
	}
	bytes := v.Bytes(f)
	b.list("[", "]", len(bytes), func(i int, b *renderer) bool {
		fmt.Fprintf(b, "[%d] = ", i)
		if element.Signed {
			b.integer(element, metadata.Signed(int64(int8(bytes[i]))))
		} else {
			b.integer(element, metadata.Unsigned(uint64(bytes[i])))
		}
		return true
	})
}

func (b *renderer) integer(t *metadata.Integer, n metadata.Number) {
	text := n.String()
	if t.Base == 16 {
		bits := n.Magnitude
		if n.Negative {
			bits = -bits
		}
		text = fmt.Sprintf("0x%X", bits&(1<<t.Size-1))
	}
	if !t.Enum {
		b.WriteString(text)
		return
	}
	label := "<unknown>"
	for _, m := range t.Mappings {
		for _, r := range m.Ranges {
			if r.Low.Compare(n) <= 0 && n.Compare(r.High) <= 0 {
				label = strconv.Quote(m.Label)
			}
		}
	}
	fmt.Fprintf(b, "( %s : container = %s )", label, text)
}
