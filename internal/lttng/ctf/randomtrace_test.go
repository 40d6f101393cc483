// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// randomTrace is a trace of one stream: metadata, a packet, and the expected output of the reference reader.
type randomTrace struct {
	metadata string
	packet   []byte
	events   []string
}

// traceMaker makes a random trace. It is written from the specification and shares no code with the reader.
type traceMaker struct {
	*rand.Rand
	little bool
	names  int
	// bare omits the names of options, as babeltrace2 does.
	bare bool
	w    bitWriter
}

// maker is a random type: its declaration around a name, its alignment, and a function that writes a random value and
// returns the value's text.
type maker struct {
	declare func(name string) string
	align   int
	write   func() string
}

// newRandomTrace returns the trace of a seed.
func newRandomTrace(seed uint64, bare bool) randomTrace {
	m := &traceMaker{Rand: rand.New(rand.NewPCG(seed, 18)), bare: bare}
	m.little = m.IntN(2) == 0
	return m.trace()
}

// chance returns true with a probability of 1/n.
func (m *traceMaker) chance(n int) bool { return m.IntN(n) == 0 }

func (m *traceMaker) name() string {
	m.names++
	return fmt.Sprintf("_f%d", m.names)
}

func orderName(little bool) string {
	if little {
		return "le"
	}
	return "be"
}

// trace writes metadata and a packet with some events.
func (m *traceMaker) trace() randomTrace {
	header, headerText := m.header()
	scopes := map[string]maker{}
	var classes []map[string]maker
	var b strings.Builder
	fmt.Fprintf(&b, "/* CTF 1.8 */\ntypealias integer { size = 8; } := uint8_t;\n"+
		"typealias integer { size = 32; } := uint32_t;\ntypealias integer { size = 64; } := uint64_t;\n"+
		"clock { name = c; freq = 1000000000; offset_s = 1700000000; offset = 12345; };\n"+
		"typealias integer { size = 64; map = clock.c.value; } := time64;\n"+
		"trace { major = 1; minor = 8; byte_order = %s; packet.header := struct { uint32_t magic; uint32_t stream_id; }; };\n", orderName(m.little))
	scopes["packet.context"] = m.structure(2, 2)
	scopes["event.context"] = m.structure(3, 2)
	fmt.Fprintf(&b, "stream { id = 7;\n\tpacket.context := struct { time64 timestamp_begin; time64 timestamp_end; "+
		"uint64_t content_size; uint64_t packet_size; %s };\n\tevent.header := %s;\n\tevent.context := %s; };\n",
		scopes["packet.context"].declare("own"+";"), headerText, scopes["event.context"].declare(""))
	for id := range 1 + m.IntN(4) {
		class := map[string]maker{"context": m.structure(2, m.below(2)), "fields": m.structure(6, 3)}
		classes = append(classes, class)
		fmt.Fprintf(&b, "event { name = \"e%d\"; id = %d; stream_id = 7;\n\tcontext := %s;\n\tfields := %s; };\n",
			id, id*13%40, class["context"].declare(""), class["fields"].declare(""))
	}
	t := randomTrace{metadata: b.String()}
	m.packet(&t, header, scopes, classes)
	t.packet = m.w.data
	return t
}

// packet writes a packet with up to 20 events.
func (m *traceMaker) packet(t *randomTrace, header func(id, time uint64), scopes map[string]maker, classes []map[string]maker) {
	m.w.bits(0xC1FC1FC1, 32, m.little)
	m.w.bits(7, 32, m.little)
	m.w.align(scopes["packet.context"].align)
	begin := m.w.pos / 8
	time := m.Uint64N(1 << 40)
	m.w.bits(time, 64, m.little)
	m.w.bits(0, 3*64, m.little) // patched below
	context := "{ own = " + scopes["packet.context"].write() + " }"
	for range m.IntN(20) {
		id := m.IntN(len(classes))
		step := uint64(1) << m.IntN(20)
		if m.chance(10) {
			step = 1 << (20 + m.IntN(20))
		}
		time += step
		header(uint64(id*13%40), time)
		text := fmt.Sprintf("%s name = e%d, stream.packet.context = %s", m.timestamp(time), id, context)
		text += ", stream.event.context = " + scopes["event.context"].write()
		text += ", event.context = " + classes[id]["context"].write()
		text += ", event.fields = " + classes[id]["fields"].write()
		t.events = append(t.events, text)
	}
	m.w.patch(begin+8, time+1, m.little)
	m.w.patch(begin+16, uint64(m.w.pos), m.little)
	m.w.align(64)
	m.w.patch(begin+24, uint64(m.w.pos), m.little)
}

func (m *traceMaker) timestamp(time uint64) string {
	time += 12345
	return fmt.Sprintf("%d.%09d", 1700000000+time/1e9, time%1e9)
}

// header returns one of the kinds of event headers: a function that writes it, and its declaration.
func (m *traceMaker) header() (func(id, time uint64), string) {
	switch m.IntN(4) {
	case 0:
		return m.extended(5, 27, 8), "struct { enum : integer { size = 5; } { compact = 0 ... 30, extended = 31 } id; " +
			"variant <id> { struct { integer { size = 27; map = clock.c.value; } timestamp; } compact; " +
			"struct { uint32_t id; time64 timestamp; } extended; } v; } align(8)"
	case 1:
		return m.extended(16, 32, 8), "struct { enum : integer { size = 16; } { compact = 0 ... 65534, extended = 65535 } id; " +
			"variant <id> { struct { integer { size = 32; map = clock.c.value; } timestamp; } compact; " +
			"struct { uint32_t id; time64 timestamp; } extended; } v; } align(8)"
	case 2:
		size := 41 + m.IntN(23)
		text := fmt.Sprintf("struct { integer { size = 6; } id; integer { size = %d; map = clock.c.value; align = 1; } t; }", size)
		return func(id, time uint64) {
			m.w.bits(id, 6, m.little)
			m.w.bits(time, size, m.little)
		}, text
	}
	return func(id, time uint64) {
		m.w.align(64)
		m.w.bits(time, 64, m.little)
		m.w.bits(id, 8, m.little)
	}, "struct { integer { size = 64; align = 64; map = clock.c.value; } timestamp; uint8_t id; }"
}

// extended returns a function that writes one of LTTng's headers, short if the time allows it.
func (m *traceMaker) extended(idBits, timeBits, align int) func(id, time uint64) {
	last := uint64(0)
	return func(id, time uint64) {
		m.w.align(align)
		escape := uint64(1)<<idBits - 1
		if id < escape && time-last < 1<<timeBits && last != 0 {
			m.w.bits(id, idBits, m.little)
			m.w.bits(time, timeBits, m.little)
		} else {
			m.w.bits(escape, idBits, m.little)
			m.w.align(8)
			m.w.bits(id, 32, m.little)
			m.w.bits(time, 64, m.little)
		}
		last = time
	}
}

// below returns the depth of types inside arrays, variants and contexts of event classes. babeltrace2 2.0.4 aborts at
// lengths and tags there, so traces for it have none.
func (m *traceMaker) below(depth int) int {
	if m.bare {
		return 0
	}
	return depth - 1
}

// field returns a random type. Nested types occur only above depth 0.
func (m *traceMaker) field(depth int) maker {
	kinds := 6
	if depth > 0 {
		kinds = 10
	}
	switch m.IntN(kinds) {
	case 0, 1:
		return m.integer()
	case 2:
		return m.float()
	case 3:
		return m.text()
	case 4:
		return m.enumeration()
	case 5:
		return m.textArray()
	case 6:
		return m.array(depth)
	case 7:
		return m.structure(4, depth-1)
	case 8:
		return m.sequence(depth)
	}
	return m.variant(depth)
}

// integerAttributes returns a random size of at least that many bits, alignment, sign and byte order. Only integers
// of whole bytes at whole bytes may have an order other than the trace's.
func (m *traceMaker) integerAttributes(least int) (size, align int, signed, little bool, text string) {
	size = least + m.IntN(65-least)
	if m.chance(2) {
		size = 8 << m.IntN(4)
	}
	align = 1 << m.IntN(7)
	if size%8 != 0 && m.chance(2) {
		align = 1
	}
	little = m.little
	if size%8 == 0 && align >= 8 {
		little = m.chance(2)
	}
	signed = m.chance(2)
	return size, align, signed, little, fmt.Sprintf("size = %d; align = %d; signed = %t; byte_order = %s;", size, align, signed, orderName(little))
}

func (m *traceMaker) integer() maker {
	size, align, signed, little, text := m.integerAttributes(1)
	// babeltrace2 2.0.4 prints 0 for hexadecimal numbers of 61 to 63 bits.
	hex := !signed && m.chance(4) && (size <= 60 || size == 64)
	if hex {
		text += " base = hex;"
	}
	return maker{
		declare: func(name string) string { return "integer { " + text + " } " + name },
		align:   align,
		write: func() string {
			value := m.Uint64() >> (64 - size)
			m.w.align(align)
			m.w.bits(value, size, little)
			if hex {
				return fmt.Sprintf("0x%X", value)
			}
			return integerText(value, size, signed)
		},
	}
}

func integerText(value uint64, size int, signed bool) string {
	if signed {
		return strconv.FormatInt(int64(value<<(64-size))>>(64-size), 10)
	}
	return strconv.FormatUint(value, 10)
}

func (m *traceMaker) float() maker {
	align := 8 << m.IntN(3)
	little, double := m.chance(2), m.chance(2)
	text := fmt.Sprintf("exp_dig = 8; mant_dig = 24; align = %d; byte_order = %s;", align, orderName(little))
	if double {
		text = fmt.Sprintf("exp_dig = 11; mant_dig = 53; align = %d; byte_order = %s;", align, orderName(little))
	}
	return maker{
		declare: func(name string) string { return "floating_point { " + text + " } " + name },
		align:   align,
		write: func() string {
			value := float64(m.IntN(4000)-2000) / 8
			m.w.align(align)
			if double {
				m.w.bits(math.Float64bits(value), 64, little)
			} else {
				m.w.bits(uint64(math.Float32bits(float32(value))), 32, little)
			}
			return strconv.FormatFloat(value, 'g', 6, 64)
		},
	}
}

// word returns random text of at least one letter, because babeltrace2 2.0.4 prints empty text wrongly.
func (m *traceMaker) word(most int) string {
	b := make([]byte, 1+m.IntN(most))
	for i := range b {
		b[i] = byte('a' + m.IntN(26))
	}
	return string(b)
}

func (m *traceMaker) text() maker {
	return maker{
		declare: func(name string) string { return "string " + name },
		align:   8,
		write: func() string {
			word := m.word(20)
			m.w.bytes(append([]byte(word), 0)...)
			return `"` + word + `"`
		},
	}
}

// textArray returns an array of characters that begins at a byte.
func (m *traceMaker) textArray() maker {
	length := 2 + m.IntN(10)
	return maker{
		declare: func(name string) string {
			return fmt.Sprintf("integer { size = 8; align = 8; signed = true; encoding = UTF8; } %s[%d]", name, length)
		},
		align: 8,
		write: func() string {
			word := m.word(length - 1)
			m.w.bytes([]byte(word)...)
			m.w.bytes(make([]byte, length-len(word))...)
			return `"` + word + `"`
		},
	}
}

// enumeration returns an enumeration with labels for 0, 10 to 12, and the largest or smallest value.
func (m *traceMaker) enumeration() maker {
	size, align, signed, little, text := m.integerAttributes(6)
	edge := uint64(1)<<(size-1) + uint64(1)<<(size-1) - 1
	if signed {
		edge = 1 << (size - 1)
	}
	labels := map[uint64]string{0: "zero", 10: "ten", 11: "ten", 12: "ten", edge: "edge"}
	return maker{
		declare: func(name string) string {
			return fmt.Sprintf("enum : integer { %s } { zero, \"ten\" = 0xA ... 014, edge = %s, } %s",
				text, integerText(edge, size, signed), name)
		},
		align: align,
		write: func() string {
			value := []uint64{0, 10, 11, 12, 13, edge}[m.IntN(6)]
			m.w.align(align)
			m.w.bits(value, size, little)
			label := "<unknown>"
			if l, ok := labels[value]; ok {
				label = strconv.Quote(l)
			}
			return fmt.Sprintf("( %s : container = %s )", label, integerText(value, size, signed))
		},
	}
}

// structure returns a structure of up to most fields.
func (m *traceMaker) structure(most, depth int) maker {
	type member struct {
		name string
		maker
	}
	var members []member
	own := 1 << m.IntN(6)
	align := own
	var text strings.Builder
	for range m.IntN(most + 1) {
		f := member{m.name(), m.field(depth)}
		members = append(members, f)
		align = max(align, f.align)
		text.WriteString(f.declare(f.name) + "; ")
	}
	return maker{
		declare: func(name string) string {
			return fmt.Sprintf("struct { %s} align(%d) %s", text.String(), own, name)
		},
		align: align,
		write: func() string {
			m.w.align(align)
			var texts []string
			for _, f := range members {
				texts = append(texts, f.name[1:]+" = "+f.write())
			}
			return listText("{", texts, "}")
		},
	}
}

func listText(open string, items []string, end string) string {
	if len(items) == 0 {
		return open + " " + end
	}
	return open + " " + strings.Join(items, ", ") + " " + end
}

// elements writes n elements and returns their text.
func (m *traceMaker) elements(element maker, n int) string {
	m.w.align(element.align)
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("[%d] = %s", i, element.write()))
	}
	return listText("[", texts, "]")
}

// element returns a type that can be declared with brackets after its name.
func (m *traceMaker) element(depth int) maker {
	if m.chance(3) {
		return m.structure(3, m.below(depth))
	}
	return m.integer()
}

func (m *traceMaker) array(depth int) maker {
	element, length := m.element(depth), m.IntN(4)
	if m.chance(4) {
		outer := 1 + m.IntN(3)
		inner := maker{align: element.align, write: func() string { return m.elements(element, length) }}
		return maker{
			declare: func(name string) string { return element.declare(fmt.Sprintf("%s[%d][%d]", name, outer, length)) },
			align:   element.align,
			write:   func() string { return m.elements(inner, outer) },
		}
	}
	return maker{
		declare: func(name string) string { return element.declare(fmt.Sprintf("%s[%d]", name, length)) },
		align:   element.align,
		write:   func() string { return m.elements(element, length) },
	}
}

// sequence returns a structure with a length and a sequence of that length.
func (m *traceMaker) sequence(depth int) maker {
	element, length, inner := m.element(depth), m.name(), m.name()
	size := 3 + m.IntN(20)
	align := max(element.align, 1)
	return maker{
		declare: func(name string) string {
			return fmt.Sprintf("struct { integer { size = %d; align = 1; } %s; %s; } %s",
				size, length, element.declare(fmt.Sprintf("%s[%s]", inner, length)), name)
		},
		align: align,
		write: func() string {
			n := m.IntN(5)
			m.w.align(align)
			m.w.bits(uint64(n), size, m.little)
			return fmt.Sprintf("{ %s = %d, %s = %s }", length[1:], n, inner[1:], m.elements(element, n))
		},
	}
}

// variant returns a structure with a tag, a field, and a variant of the tag.
func (m *traceMaker) variant(depth int) maker {
	tag, inner := m.name(), m.name()
	options := []maker{m.field(m.below(depth)), m.integer(), m.field(m.below(depth))}
	names := []string{"_one", "two", "_three"}
	return maker{
		declare: func(name string) string {
			text := fmt.Sprintf("struct { enum : integer { size = 8; } { _one = 1 ... 3, two, \"_three\" = 200 } %s; variant <%s> { ", tag, tag)
			for i, o := range options {
				text += o.declare(names[i]) + "; "
			}
			return text + "} " + inner + "; } " + name
		},
		align: 8,
		write: func() string {
			i := m.IntN(3)
			value := []int{2, 4, 200}[i]
			m.w.align(8)
			m.w.bits(uint64(value), 8, m.little)
			name := strings.TrimPrefix(names[i], "_") + " = "
			if m.bare {
				name = ""
			}
			m.w.align(options[i].align)
			return fmt.Sprintf("{ %s = ( %q : container = %d ), %s = { %s%s } }", tag[1:], names[i], value, inner[1:], name, options[i].write())
		},
	}
}

// metadataPackets returns text in metadata packets of a few bytes each.
func metadataPackets(text string, order binary.ByteOrder) []byte {
	const header, room = 37, 100
	var b []byte
	for len(text) > 0 {
		n := min(room, len(text))
		packet := make([]byte, 256)
		order.PutUint32(packet, 0x75D11D57)
		order.PutUint32(packet[24:], uint32(header+n)*8)
		order.PutUint32(packet[28:], uint32(len(packet))*8)
		packet[35], packet[36] = 1, 8
		copy(packet[header:], text[:n])
		text = text[n:]
		b = append(b, packet...)
	}
	return b
}
