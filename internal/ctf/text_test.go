// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/ctf"
	"github.com/callbraid/callbraid/internal/ctf/metadata"
)

// logLevelNames are LTTng's, as babeltrace prints them.
var logLevelNames = []string{
	"EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG_SYSTEM", "DEBUG_PROGRAM",
	"DEBUG_PROCESS", "DEBUG_MODULE", "DEBUG_UNIT", "DEBUG_FUNCTION", "DEBUG_LINE", "DEBUG",
}

// hidden are the fields of the packet context that babeltrace doesn't print.
var hidden = map[string]bool{
	"timestamp_begin": true, "timestamp_end": true, "content_size": true, "packet_size": true,
	"packet_seq_num": true, "events_discarded": true,
}

// rendered is the event that a reader has read, as babeltrace 1 prints it with all
// its names, but without the name of the trace's directory.
func rendered(r *ctf.Reader) string {
	e := &r.Event
	trace := e.Class.Stream.Trace
	var b strings.Builder
	fmt.Fprintf(&b, "timestamp = %s, ", time.Unix(0, e.UnixNano()).UTC().Format("15:04:05.000000000"))
	fmt.Fprintf(&b, "trace:hostname = %s, trace:domain = %s, ", trace.Env("hostname"), trace.Env("domain"))
	if m := e.Class.Meta; m.HasLogLevel {
		fmt.Fprintf(&b, "loglevel = TRACE_%s (%d), ", logLevelNames[m.LogLevel], m.LogLevel)
	}
	fmt.Fprintf(&b, "name = %s", e.Class.Name)
	renderScope(&b, "stream.packet.context", &r.Packet.Values, e.Class.Stream.PacketContext)
	if len(e.Class.Stream.EventCommonContext.Members) > 0 {
		renderScope(&b, "stream.event.context", &e.Values, e.Class.Stream.EventCommonContext)
	}
	if len(e.Class.Context.Members) > 0 {
		renderScope(&b, "event.context", &e.Values, e.Class.Context)
	}
	renderScope(&b, "event.fields", &e.Values, e.Class.Fields)
	return b.String()
}

func renderScope(b *strings.Builder, name string, v *ctf.Values, f *ctf.Field) {
	fmt.Fprintf(b, ", %s = ", name)
	renderField(b, v, f)
}

// renderField writes the value of a field.
func renderField(b *strings.Builder, v *ctf.Values, f *ctf.Field) {
	switch f.Kind {
	case ctf.Uint:
		renderInteger(b, f.Type.(*metadata.Integer), metadata.Unsigned(v.Uint(f)))
	case ctf.Int:
		renderInteger(b, f.Type.(*metadata.Integer), metadata.Signed(v.Int(f)))
	case ctf.Float:
		fmt.Fprintf(b, "%s", strconv.FormatFloat(v.Float(f), 'g', 6, 64))
	case ctf.Text:
		fmt.Fprintf(b, `"%s"`, v.AppendText(nil, f)) // without escapes
	case ctf.Bytes:
		renderBytes(b, v, f)
	case ctf.Struct:
		renderList(b, "{ ", " }", len(f.Members), func(i int) bool {
			m := f.Members[i]
			if f.Scope == metadata.PacketContext && hidden[m.Name] {
				return false
			}
			fmt.Fprintf(b, "%s = ", m.Name)
			renderField(b, v, m)
			return true
		})
	case ctf.Variant:
		b.WriteString("{ ")
		if option := v.Option(f); option != nil {
			fmt.Fprintf(b, "%s = ", option.Name)
			renderField(b, v, option)
		}
		b.WriteString(" }")
	case ctf.Optional:
		if option := v.Option(f); option != nil {
			renderField(b, v, option)
		} else {
			b.WriteString("<none>")
		}
	case ctf.Array:
		renderList(b, "[ ", " ]", v.Len(f), func(i int) bool {
			fmt.Fprintf(b, "[%d] = ", i)
			element := v.Element(f, i)
			renderField(b, &element, f.Members[0])
			return true
		})
	}
}

// renderList writes things with commas between them; one that is false has written
// nothing.
func renderList(b *strings.Builder, open, end string, n int, one func(int) bool) {
	b.WriteString(open)
	written := b.Len()
	for i := range n {
		before := b.String()[written:]
		if before != "" {
			b.WriteString(", ")
		}
		if !one(i) && before != "" {
			text := strings.TrimSuffix(b.String(), ", ")
			b.Reset()
			b.WriteString(text)
		}
	}
	if b.Len() == written {
		end = strings.TrimPrefix(end, " ")
	}
	b.WriteString(end)
}

// renderBytes writes an array of integers of 8 bits.
func renderBytes(b *strings.Builder, v *ctf.Values, f *ctf.Field) {
	element := &metadata.Integer{Size: 8, Base: 16}
	if array, ok := f.Type.(*metadata.Array); ok {
		element = array.Element.(*metadata.Integer)
	}
	bytes := v.Bytes(f)
	renderList(b, "[ ", " ]", len(bytes), func(i int) bool {
		fmt.Fprintf(b, "[%d] = ", i)
		if element.Signed {
			renderInteger(b, element, metadata.Signed(int64(int8(bytes[i]))))
		} else {
			renderInteger(b, element, metadata.Unsigned(uint64(bytes[i])))
		}
		return true
	})
}

func renderInteger(b *strings.Builder, t *metadata.Integer, n metadata.Number) {
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
