// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
)

// story is a Visitor that writes down what it is told.
type story struct{ lines []string }

func (s *story) say(format string, a ...any) { s.lines = append(s.lines, fmt.Sprintf(format, a...)) }

func (s *story) Message(h Header) {
	s.say("%s %d #%d %t", h.Dialect, h.Millis, h.Counter, h.HasCounter)
}
func (s *story) ObjectCreated(millis int64, id uint64, class []byte) {
	s.say("%d created %d %s %t", millis, id, class, class == nil)
}
func (s *story) ObjectDestroyed(millis int64, id uint64) { s.say("%d destroyed %d", millis, id) }
func (s *story) GC(millis int64, what Type)              { s.say("%d gc %d", millis, what) }
func (s *story) GCStats(millis int64, stats []Stat) {
	line := fmt.Sprint(millis, " stats")
	for _, one := range stats {
		line += fmt.Sprintf(" %s=%d/%t", one.Key, one.Value, one.Known)
	}
	s.say("%s", line)
}
func (s *story) DumpPart(millis int64, p DumpPart) { s.say("%d part %v", millis, p) }
func (s *story) CPUSample(millis int64, frames []Frame) {
	s.say("%d sample%s", millis, told(frames))
}
func (s *story) SnapshotBegin(millis int64)              { s.say("%d snapshot", millis) }
func (s *story) SnapshotStack(id uint64, frames []Frame) { s.say("stack %d%s", id, told(frames)) }
func (s *story) SnapshotEnd()                            { s.say("end") }
func (s *story) Unknown(millis int64, number uint64)     { s.say("%d unknown %d", millis, number) }
func (s *story) DumpObject(o *DumpedObject) {
	var to []uint64
	for id := range o.References.All() {
		to = append(to, id)
	}
	s.say("object %d %s %v %s %d %t %d %t", o.ID, o.Class, to, o.File, o.Line, o.HasLine, o.Size, o.HasSize)
}
func (s *story) SnapshotAllocation(a *Allocation) {
	stacks := map[uint64]uint64{}
	for id, n := range a.Stacks.All() {
		stacks[id] = n
	}
	s.say("allocated %s:%d %s %t %d of %d %v", a.File, a.Line, a.Class, a.Class == nil, a.Count, a.Size, stacks)
}

func told(frames []Frame) (line string) {
	for _, f := range frames {
		line += fmt.Sprintf(" [%s %s %s:%d %t %d %t]", f.Method, f.Label, f.File, f.Line, f.Singleton, f.Thread, f.HasThread)
	}
	return line
}

// pack writes values as MessagePack: pairs are maps in their order.
func pack(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case pairs:
			b = msgp.AppendMapHeader(b, uint32(len(v)/2))
			b = append(b, pack(v...)...)
		case list:
			b = msgp.AppendArrayHeader(b, uint32(len(v)))
			b = append(b, pack(v...)...)
		case wire:
			b = append(b, v...)
		default:
			var err error
			if b, err = msgp.AppendIntf(b, v); err != nil {
				panic(err)
			}
		}
	}
	return b
}

type (
	pairs []any
	list  []any
	wire  []byte // as it stands
)

// collection is a released message of events.
func collection(events ...any) []byte {
	return pack(pairs{0, 7, 1, 1000.0, 9, 3, 2, list(events)})
}

const head = "released 1000 #3 true"

func TestMessagesAreReadInWhateverWayTheyAreWritten(t *testing.T) {
	cases := map[string]struct {
		message []byte
		want    []string
	}{
		"no events":                     {collection(), nil},
		"an array32 of one":             {pack(pairs{0, 7, 1, 1000.0, 9, 3, 2, wire(pack(wire{0xdd, 0, 0, 0, 1}, pairs{0, 2, 1, 5.0}))}), []string{"5 gc 4"}},
		"a time that is a whole number": {collection(pairs{0, 2, 1, 5}), []string{"5 gc 4"}},
		"the payload first, then what says what it is": {
			pack(pairs{0, 7, 2, list{pairs{2, pairs{4, "A", 3, 9}, 1, 5.0, 0, 0}}, 9, 3, 1, 1000.0}), []string{"5 created 9 A false"}},
		"keys that nobody knows": {collection(pairs{"x", list{1, 2}, 0, 1, 77, nil, 1, 5.0, 2, pairs{3, 9, 200, pairs{1, 2}, "y", 1}}), []string{"5 destroyed 9"}},
		"an ID of 64 bits":       {collection(pairs{0, 1, 1, 5.0, 2, pairs{3, uint64(1) << 63}}), []string{"5 destroyed 9223372036854775808"}},
		"a class in str8":        {collection(pairs{0, 0, 1, 5.0, 2, pairs{3, 9, 4, wire("\xd9\x01A")}}), []string{"5 created 9 A false"}},
		"a class in str16":       {collection(pairs{0, 0, 1, 5.0, 2, pairs{3, 9, 4, wire("\xda\x00\x01A")}}), []string{"5 created 9 A false"}},
		"a class in str32":       {collection(pairs{0, 0, 1, 5.0, 2, pairs{3, 9, 4, wire("\xdb\x00\x00\x00\x01A")}}), []string{"5 created 9 A false"}},
		"a class in bin8":        {collection(pairs{0, 0, 1, 5.0, 2, pairs{3, 9, 4, []byte("A")}}), []string{"5 created 9 A false"}},
		"a class that is empty":  {collection(pairs{0, 0, 1, 5.0, 2, pairs{3, 9, 4, ""}}), []string{"5 created 9  false"}},
		"a class that is nil":    {collection(pairs{0, 0, 1, 5.0, 2, pairs{3, 9, 4, nil}}), []string{"5 created 9  true"}},
		"no class":               {collection(pairs{0, 0, 1, 5.0, 2, pairs{3, 9}}), []string{"5 created 9  true"}},
		"statistics that are no numbers": {
			collection(pairs{0, 6, 1, 5.0, 2, pairs{"a", "", "b", -1, "c", 1.5, "d", 2.0, "e", nil, "f", uint64(1) << 63, "g", list{1}}}),
			[]string{"5 stats a=0/false b=-1/true c=0/false d=2/true e=0/false f=0/false g=0/false"}},
		"types that nobody knows": {collection(pairs{0, 99, 1, 5.0, 2, list{1}}, pairs{0, 7, 1, 6.0}, pairs{0, 2, 1, 7.0}),
			[]string{"5 unknown 99", "6 unknown 7", "7 gc 4"}},
		"a dumped object with all it can have": {
			collection(pairs{0, 5, 1, 5.0, 10, 2, 11, 1, 2, list{pairs{3, 9, 4, "A", 5, list{1, 70000, uint64(1) << 40}, 6, "a.rb", 7, 3, 8, 40}}}),
			[]string{"5 part {2 1 1}", "object 9 A [1 70000 1099511627776] a.rb 3 true 40 true"}},
		"a dumped object with nothing but an ID": {
			collection(pairs{0, 5, 1, 5.0, 10, 2, 11, 1, 2, list{pairs{3, 9}}}), []string{"5 part {2 1 1}", "object 9  []  0 false 0 false"}},
		"two objects, the second with less": {
			collection(pairs{0, 5, 1, 5.0, 10, 2, 11, 2, 2, list{pairs{3, 9, 4, "A", 5, list{}, 6, "f", 7, 1, 8, 4}, pairs{3, 8, 4, nil, 5, list{}, 6, nil, 7, nil, 8, 1}}}),
			[]string{"5 part {2 2 2}", "object 9 A [] f 1 true 4 true", "object 8  []  0 false 1 true"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s story
			n, err := NewDecoder(Limits{}).Decode(c.message, &s)
			require.NoError(t, err)
			assert.Equal(t, append([]string{head}, c.want...), s.lines)
			assert.LessOrEqual(t, n, max(1, len(c.want)))
		})
	}
}

func TestSnapshotsAreSplitAtTheFirstAndTheLastSpace(t *testing.T) {
	site := func(key any) []byte {
		return pack(pairs{0, 6, 1, 1000.0, 9, 3, 2, list{pairs{0, 0, 1, 5.0, 2, pairs{
			16, pairs{77, list{pairs{12, "m", 6, "<cfunc>", 7, 4, 14, 1}}},
			18, pairs{"a.rb", pairs{key, pairs{17, 5, 16, pairs{77, 2}}}},
		}}}})
	}
	for key, want := range map[string]string{
		"12 String 40":           "allocated a.rb:12 String false 5 of 40 map[77:2]",
		"12 (null) 0":            "allocated a.rb:12  true 5 of 0 map[77:2]",
		"0 #<Class: with x> 400": "allocated a.rb:0 #<Class: with x> false 5 of 400 map[77:2]",
		"1  2":                   "allocated a.rb:1  false 5 of 2 map[77:2]",
	} {
		var s story
		_, err := NewDecoder(Limits{}).Decode(site(key), &s)
		require.NoError(t, err)
		assert.Equal(t, want, s.lines[3])
		assert.Equal(t, "end", s.lines[4])
	}
	for _, key := range []string{"", "12", "12 String", "x String 40", "12 String x", "12 String -1", "1234567890123456789 A 1", " A 1"} {
		_, err := NewDecoder(Limits{}).Decode(site(key), &story{})
		assert.ErrorContains(t, err, "expected a text of a line, a class and a size", key)
	}
}

func TestWhatIsWrongIsSaidWithItsPlace(t *testing.T) {
	created := pairs{0, 0, 1, 5.0, 2, pairs{3, 9, 4, "A"}}
	whole := collection(created)
	deep := append(collection(), bytes.Repeat([]byte{0x91}, 5_000_000)...)
	deep[len(collection())-1] = 0x91
	cases := map[string]struct {
		message []byte
		fault   Fault
		text    string
	}{
		"nothing":                     {nil, FaultMessage, "byte 0: expected an event collection"},
		"another protocol":            {[]byte("GET / HTTP/1.1\r\n\r\n"), FaultMessage, "byte 0: expected an event collection"},
		"a handshake":                 {pack(pairs{0, 8, 1, 5.0, 2, pairs{}}), FaultMessage, "byte 0"},
		"no payload":                  {pack(pairs{0, 7, 1, 5.0}), FaultMessage, "expected an event collection with a payload"},
		"no time":                     {pack(pairs{0, 7, 2, list{}}), FaultMessage, "expected a type and a time"},
		"a payload that is a map":     {pack(pairs{0, 7, 1, 5.0, 2, pairs{}}), FaultType, "expected an array of events, got map (0x80)"},
		"an event that is a number":   {collection(5), FaultType, "expected a map, got int (0x05)"},
		"one more event than is sent": {func() []byte { b := bytes.Clone(whole); b[15]++; b[15] = 0x92; return b }(), FaultTruncated, "the end of the message"},
		"an array of 4 G events":      {pack(pairs{0, 7, 1, 5.0, 9, 0, 2, wire{0xdd, 0xff, 0xff, 0xff, 0xff}}), FaultTruncated, "the end of the message"},
		"a map of 4 G entries":        {collection(wire{0xdf, 0xff, 0xff, 0xff, 0xff}), FaultTruncated, "the end of the message"},
		"a text of 4 GiB":             {collection(pairs{0, 0, 1, 5.0, 2, pairs{3, 9, 4, wire{0xdb, 0xff, 0xff, 0xff, 0xff}}}), FaultTruncated, "expected the name of a class"},
		"five million arrays":         {deep, FaultType, "expected a map, got array"},
		"arrays nested in a value":    {collection(pairs{0, 0, 1, 5.0, 2, pairs{50, wire(bytes.Repeat([]byte{0x91}, 5_000_000))}}), FaultLimit, "more of each other's elements"},
		"a byte that begins nothing":  {collection(wire{0xc1}), FaultType, "got 0xc1"},
		"a negative ID":               {collection(pairs{0, 1, 1, 5.0, 2, pairs{3, -1}}), FaultValue, "expected an object ID"},
		"an ID that is a text":        {collection(pairs{0, 1, 1, 5.0, 2, pairs{3, "x"}}), FaultType, "expected an object ID, got str"},
		"no ID":                       {collection(pairs{0, 1, 1, 5.0, 2, pairs{}}), FaultMessage, "expected an object ID"},
		"an object without a payload": {collection(pairs{0, 1, 1, 5.0}), FaultMessage, "expected an event with a payload"},
		"a time before 1970":          {collection(pairs{0, 2, 1, -1.0}), FaultValue, "from 1970 to 2262"},
		"a time that is no number":    {collection(pairs{0, 2, 1, wire{0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1}}), FaultValue, "NaN"},
		"a time that is too late":     {collection(pairs{0, 2, 1, 1e300}), FaultValue, "from 1970 to 2262"},
		"a time that is a text":       {collection(pairs{0, 2, 1, "x"}), FaultType, "expected a time in milliseconds"},
		"more after it":               {append(bytes.Clone(whole), 0xc0), FaultTrailing, "got 1 more bytes"},
		"too many frames":             {collection(pairs{0, 9, 1, 5.0, 2, list{pairs{}, pairs{}, pairs{}}}), FaultLimit, "at most 2 frames"},
		"too many statistics":         {collection(pairs{0, 6, 1, 5.0, 2, pairs{"a", 1, "b", 2, "c", 3}}), FaultLimit, "at most 2 statistics"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewDecoder(Limits{Frames: 2, Stats: 2}).Decode(c.message, &story{})
			var bad *Error
			require.ErrorAs(t, err, &bad)
			assert.Equal(t, c.fault, bad.Fault, err)
			assert.Contains(t, err.Error(), c.text)
			assert.LessOrEqual(t, bad.Offset, len(c.message))
		})
	}
}

func TestEventsBeforeAnErrorAreKept(t *testing.T) {
	gc := pairs{0, 2, 1, 5.0}
	var s story
	n, err := NewDecoder(Limits{}).Decode(collection(gc, gc, 7, gc), &s)
	require.Error(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, []string{head, "5 gc 4", "5 gc 4"}, s.lines)
	// The message of a server that announces one event more than it has.
	for _, m := range openCapture(t, "samples").Messages {
		if m.Name == malformed {
			n, err := NewDecoder(Limits{}).Decode(m.Data, &story{})
			assert.Equal(t, 0, n)
			var bad *Error
			require.True(t, errors.As(err, &bad))
			assert.Equal(t, FaultTruncated, bad.Fault)
			assert.Equal(t, len(m.Data), bad.Offset)
		}
	}
}

// Every captured message is cut at many places: what was told before is what the whole
// message begins with.
func TestMessagesThatAreCutGiveTheirBegin(t *testing.T) {
	for name := range captures {
		for i, m := range openCapture(t, name).Messages {
			if i%31 != 0 || m.Name == malformed {
				continue
			}
			var whole story
			_, err := NewDecoder(Limits{}).Decode(m.Data, &whole)
			require.NoError(t, err)
			for cut := 0; cut < len(m.Data); cut += 1 + len(m.Data)/13 {
				var s story
				_, err := NewDecoder(Limits{}).Decode(m.Data[:cut:cut], &s)
				require.Error(t, err)
				require.LessOrEqual(t, len(s.lines), len(whole.lines))
				require.True(t, slices.Equal(whole.lines[:len(s.lines)], s.lines), "%s cut at %d", m.Name, cut)
			}
		}
	}
}

// The way for what is written plainly gives the same as the other, which is tried by
// writing numbers of types in another way.
func TestPlainEventsAreReadAsAllOthers(t *testing.T) {
	for _, name := range []string{"released-30s", "samples"} {
		for _, m := range openCapture(t, name).Messages {
			h, err := ReadHeader(m.Data)
			if err != nil || h.Dialect != Released || m.Name == malformed {
				continue
			}
			var plain, other story
			n, err := NewDecoder(Limits{}).Decode(m.Data, &plain)
			require.NoError(t, err)
			d := NewDecoder(Limits{})
			d.in, d.visitor = newReader(m.Data), &other
			h, e, err := d.in.header()
			require.NoError(t, err)
			d.visitor.Message(h)
			events, err := d.in.array("")
			require.NoError(t, err)
			for range events {
				begin := d.in.at
				if d.plainObject() {
					// Taken back: the other way reads it.
					d.in.at = begin
					other.lines = other.lines[:len(other.lines)-1]
				}
				require.NoError(t, d.event(h.Dialect))
			}
			d.in.leave(&e)
			require.Equal(t, n, int(events))
			require.True(t, slices.Equal(plain.lines, other.lines), m.Name)
		}
	}
}

func TestNothingIsAllocatedForAnEvent(t *testing.T) {
	d, v := NewDecoder(Limits{}), &counting{}
	for name := range captures {
		for _, m := range openCapture(t, name).Messages {
			if m.Name == malformed {
				continue
			}
			_, _ = d.Decode(m.Data, v)
			assert.Zero(t, testing.AllocsPerRun(1, func() { _, _ = d.Decode(m.Data, v) }), m.Name)
		}
	}
}

func TestDialectsAreKnownByTheFirstBytes(t *testing.T) {
	assert.Equal(t, Released, DialectOf([]byte{0x84, 0x00, 0x07}))
	assert.Equal(t, Documented, DialectOf([]byte{0x84, 0x00, 0x06}))
	for _, b := range [][]byte{nil, {0x84}, {0x84, 0x00}, {0x84, 0x00, 0x05}, {0x84, 0x01, 0x07}, {0x94, 0x00, 0x07}, []byte("ok")} {
		assert.Equal(t, UnknownDialect, DialectOf(b), "%x", b)
	}
}

func TestHandshakesThatAreNone(t *testing.T) {
	for name, reply := range map[string][]byte{
		"nothing": nil, "ok": []byte("ok"), "an event collection": collection(), "a payload that is a list": pack(pairs{0, 8, 1, 5.0, 2, list{}}),
		"no payload": pack(pairs{0, 8, 1, 5.0}), "a name that is a number": pack(pairs{0, 8, 1, 5.0, 2, pairs{"process_name", 5}}),
	} {
		_, err := DecodeHandshake(reply)
		var bad *Error
		assert.ErrorAs(t, err, &bad, name)
	}
	h, err := DecodeHandshake(pack(pairs{0, 7, 1, 5.0, 2, pairs{"pid", "", "new_key", list{1}, "object_trace_enabled", true, "clock_type", nil}}))
	require.NoError(t, err)
	assert.Equal(t, Handshake{Dialect: Documented, Millis: 5, ObjectTrace: true}, h)
}

func TestEventsThatADialectLacksAreLeftOut(t *testing.T) {
	var c Collection
	c.Message(Header{Dialect: Documented, Millis: 5})
	c.ObjectCreated(5, 1, nil)
	c.ObjectDestroyed(5, 1)
	c.Unknown(5, 99)
	c.GC(5, GCStart)
	assert.Equal(t, 3, c.Absent)
	assert.Equal(t, 1, c.Events())
	c.Message(Header{Dialect: Released, Millis: 5})
	c.SnapshotBegin(5)
	c.SnapshotAllocation(&Allocation{Count: 1})
	c.SnapshotEnd()
	assert.Equal(t, 0, c.Events())
	var s story
	_, err := NewDecoder(Limits{}).Decode(c.Append(nil), &s)
	require.NoError(t, err)
	assert.Equal(t, []string{"released 5 #0 false"}, s.lines)
}
