// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	testStream = Stream{ID: StreamID{15: 1}, Epoch: 1_700_000_000_000_000_000, Resolution: 1_000_000, TextKey: "demo.text"}

	functionMain = &Function{Qualified: "demo.Shop.main", Display: "Shop.main", Text: "demo/Shop.main;9;([Ljava/lang/String;)V", File: "Shop.java", Line: 12}
	functionInit = &Function{Qualified: "demo.Shop$Order.<init>", Display: "Shop$Order.<init>", Text: "demo/Shop$Order.<init>;0;()V"}
	laneMain     = Lane{ID: 0, Name: "main"}
	laneWorker   = Lane{ID: math.MaxUint64, Name: "wörker-1"}
)

// call is a call event with its names, before packing and after unpacking. sequence and time are in
// ticks before, and in Unix nanoseconds after.
type call struct {
	kind       Kind
	sequence   uint64
	time       int64
	line       uint32
	function   *Function // nil: none
	lane       Lane
	exception  string // empty: none
	attributes []attributeOf
}

type attributeOf struct {
	key   string
	value Value
}

// addCall enters the names of c into the tables of p and adds it; false: it doesn't fit.
func addCall(p *Packer, c *call) bool {
	e := Event{Kind: c.kind, Sequence: c.sequence, Time: c.time, Line: c.line}
	ok := true
	if c.kind != KindSkip {
		e.Lane, ok = p.Lane(c.lane)
	}
	if ok && c.function != nil {
		e.Function, ok = p.Function(c.function)
	}
	if ok && c.exception != "" {
		e.Exception, ok = p.Exception(c.exception)
	}
	if !ok || !p.Add(&e) {
		return false
	}
	for _, a := range c.attributes {
		if !p.Attribute(a.key, a.value) {
			return false
		}
	}
	return true
}

// pack packs calls into as many batches as necessary.
func pack(t testing.TB, stream Stream, maxBytes int, calls []call) (batches [][]byte) {
	t.Helper()
	p, err := NewPacker(stream, maxBytes)
	require.NoError(t, err)
	flush := func() {
		packed, err := p.Close(nil, 0, stream.Epoch)
		require.NoError(t, err)
		require.LessOrEqual(t, len(packed.Data), maxBytes)
		batches = append(batches, slices.Clone(packed.Data))
		p.Reset()
	}
	for i := range calls {
		if !addCall(p, &calls[i]) {
			require.Positive(t, p.Len(), "event %d doesn't fit into an empty batch", i)
			flush()
			require.True(t, addCall(p, &calls[i]), "event %d doesn't fit into an empty batch", i)
		}
	}
	flush()
	return batches
}

// unpack returns the calls of a batch, read through a buffer of the given length.
func unpack(t testing.TB, data []byte, buffer int) (calls []call) {
	t.Helper()
	var b Batch
	require.NoError(t, b.Unpack(data))
	return resolve(&b, buffer)
}

func resolve(b *Batch, buffer int) (calls []call) {
	events := make([]Event, buffer)
	attributes := b.Attributes
	for first := 0; first < b.Len(); {
		n := b.Events(events, first)
		for i, e := range events[:n] {
			c := call{kind: e.Kind, sequence: e.Sequence, time: e.Time, line: e.Line}
			if e.Kind != KindSkip {
				c.lane = b.Lanes[e.Lane]
			}
			if e.Kind != KindSkip && e.Kind != KindExitTop {
				c.function = &b.Functions[e.Function]
			}
			if (e.Kind == KindThrow || e.Kind == KindUnwind) && e.Exception > 0 {
				c.exception = b.Exceptions[e.Exception-1]
			}
			for len(attributes) > 0 && int(attributes[0].Event) == first+i {
				a := attributes[0]
				c.attributes = append(c.attributes, attributeOf{b.Values[a.Key].Str(), b.Values[a.Value]})
				attributes = attributes[1:]
			}
			calls = append(calls, c)
		}
		first += n
	}
	return calls
}

// inNanoseconds converts the calls' ticks with the clock of the stream.
func inNanoseconds(stream Stream, calls []call) []call {
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].time = stream.Epoch + calls[i].time*stream.Resolution
	}
	return calls
}

func TestUnpackReturnsThePackedEvents(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls []call
	}{
		{"no event", nil},
		{"one call", []call{
			{kind: KindEnter, sequence: 7, time: 3, function: functionMain, lane: laneMain},
			{kind: KindExit, sequence: 8, time: 3, line: 17, function: functionMain, lane: laneMain},
		}},
		{"every kind", []call{
			{kind: KindEnter, sequence: 0, function: functionMain, lane: laneMain},
			{kind: KindThrow, sequence: 1, function: functionMain, lane: laneMain, exception: "java.lang.Error"},
			{kind: KindUnwind, sequence: 2, function: functionMain, lane: laneMain, exception: "java.lang.Error"},
			{kind: KindUnwind, sequence: 3, function: functionMain, lane: laneMain},
			{kind: KindSkip, sequence: 4},
			{kind: KindExitTop, sequence: 5, lane: laneWorker},
		}},
		{"a function without any name", []call{{kind: KindEnter, function: &Function{}, lane: Lane{}}}},
		{"one lane under two names", []call{
			{kind: KindEnter, sequence: 1, function: functionInit, lane: Lane{ID: 4, Name: "a"}},
			{kind: KindEnter, sequence: 2, function: functionInit, lane: Lane{ID: 4, Name: "b"}},
			{kind: KindEnter, sequence: 3, function: functionInit, lane: Lane{ID: 4, Name: "a"}},
		}},
		{"sequence and time go backwards", []call{
			{kind: KindEnter, sequence: 1000, time: 50, function: functionInit, lane: laneMain},
			{kind: KindEnter, sequence: 117, time: 40, function: functionInit, lane: laneMain},
			{kind: KindEnter, sequence: 0, time: -40, function: functionInit, lane: laneMain},
		}},
		{"the whole range of 32 bits around the first event", []call{
			{kind: KindEnter, sequence: 1 << 40, time: 1 << 32, function: functionInit, lane: laneMain},
			{kind: KindEnter, sequence: 1<<40 + math.MaxInt32, time: 1<<32 + math.MaxInt32, function: functionInit, lane: laneMain},
			{kind: KindEnter, sequence: 1<<40 - 1<<31, time: 1<<32 - 1<<31, function: functionInit, lane: laneMain},
		}},
		{"the highest sequence number and line", []call{
			{kind: KindEnter, sequence: MaxSequence, line: math.MaxUint32, function: functionInit, lane: laneMain},
		}},
		{"attributes", []call{
			{kind: KindEnter, sequence: 1, function: functionInit, lane: laneMain},
			{kind: KindEnter, sequence: 2, function: functionInit, lane: laneMain, attributes: []attributeOf{
				{"s", StringValue("wert")}, {"empty", StringValue("")}, {"i", IntValue(math.MinInt64)},
				{"d", DoubleValue(math.Inf(-1))}, {"yes", BoolValue(true)}, {"no", BoolValue(false)}, {"", IntValue(-1)},
			}},
			{kind: KindExitTop, sequence: 3, lane: laneMain},
			{kind: KindExitTop, sequence: 4, lane: laneMain, attributes: []attributeOf{{"s", StringValue("s")}}},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			batches := pack(t, testStream, MinBatchBytes, test.calls)
			require.Len(t, batches, 1)
			for _, buffer := range []int{1, 2, 3, 100} {
				assert.Equal(t, inNanoseconds(testStream, test.calls), unpack(t, batches[0], buffer))
			}
		})
	}
}

func TestABatchDescribesItsStream(t *testing.T) {
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	barriers := []Barrier{
		Point(0, CauseSuspended), Interval(3, 9, CauseDiscarded), Interval(12, 12, CauseBadData), End(MaxSequence, CauseEnded),
	}
	for _, events := range []int{0, 1, 3} {
		for i := range events {
			require.True(t, addCall(p, &call{kind: KindEnter, sequence: uint64(90 + i), time: int64(100 - 10*i), function: functionInit, lane: laneMain}))
		}
		packed, err := p.Close(barriers, 12345, 42)
		require.NoError(t, err)
		assert.Equal(t, testStream.ID, packed.Stream)
		assert.Equal(t, events, packed.Events)
		assert.Equal(t, events, p.Len(), "closed")
		if events == 0 {
			assert.Equal(t, [2]int64{42, 42}, [2]int64{packed.First, packed.Last})
		} else {
			ms := testStream.Resolution
			assert.Equal(t, [2]int64{testStream.Epoch + int64(110-10*events)*ms, testStream.Epoch + 100*ms}, [2]int64{packed.First, packed.Last})
		}
		var b Batch
		require.NoError(t, b.Unpack(packed.Data))
		assert.Equal(t, events, b.Len())
		assert.Equal(t, testStream.ID, b.Stream)
		assert.Equal(t, testStream.Resolution, b.Resolution)
		assert.Equal(t, testStream.TextKey, b.TextKey)
		assert.Equal(t, uint64(12345), b.Next)
		assert.Equal(t, int64(42), b.Received)
		assert.Equal(t, barriers, b.Barriers)
		if events == 0 {
			assert.Equal(t, uint64(12345), b.baseSequence, "without events it is the next")
			assert.Equal(t, int64(42), b.baseTime)
		}
		p.Reset()
	}
}

// A second use of a Batch or a Packer contains nothing of the first.
func TestReuseStartsEmpty(t *testing.T) {
	full, _ := sample(t)
	empty := pack(t, testStream, MinBatchBytes, nil)[0]
	var b Batch
	require.NoError(t, b.Unpack(full))
	require.NoError(t, b.Unpack(empty))
	assert.Zero(t, b.Len()+len(b.Attributes)+len(b.Functions)+len(b.Lanes)+len(b.Exceptions)+len(b.Values)+len(b.Barriers)+len(b.Renames))

	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	generation := p.Generation()
	require.True(t, addCall(p, &call{kind: KindEnter, sequence: 9, function: functionMain, lane: laneMain}))
	require.True(t, p.Rename(Rename{Lane: 1, Name: "n"}))
	p.Reset()
	assert.Equal(t, generation+1, p.Generation())
	packed, err := p.Close(nil, 0, testStream.Epoch)
	require.NoError(t, err)
	assert.Equal(t, empty, packed.Data)
}

func TestAPackerRefusesAnImpossibleStream(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*Stream)
		maxBytes int
		want     string
	}{
		{"no ID", func(s *Stream) { s.ID = StreamID{} }, MinBatchBytes, "call stream ID is zero"},
		{"no resolution", func(s *Stream) { s.Resolution = 0 }, MinBatchBytes, "clock resolution is 0 ns, expected 1 to 1000000000"},
		{"a coarse resolution", func(s *Stream) { s.Resolution++ }, MinBatchBytes, "clock resolution is 1000000001 ns, expected 1 to 1000000000"},
		{"small batches", func(*Stream) {}, MinBatchBytes - 1, "batch size is 163839 bytes, expected 163840 to 1048576"},
		{"large batches", func(*Stream) {}, MaxBatchBytes + 1, "batch size is 1048577 bytes, expected 163840 to 1048576"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stream := Stream{ID: StreamID{1}, Resolution: MaxResolution}
			test.change(&stream)
			_, err := NewPacker(stream, test.maxBytes)
			assert.EqualError(t, err, test.want)
		})
	}
}

func TestNothingIsAddedToAClosedBatch(t *testing.T) {
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	require.True(t, addCall(p, &call{kind: KindEnter, function: functionMain, lane: laneMain}))
	packed, err := p.Close(nil, 1, 1)
	require.NoError(t, err)
	data := slices.Clone(packed.Data)

	assert.False(t, p.Add(&Event{Kind: KindSkip, Sequence: 1}))
	assert.False(t, p.Attribute("k", IntValue(1)))
	_, ok := p.Function(functionInit)
	assert.False(t, ok)
	_, ok = p.Lane(laneWorker)
	assert.False(t, ok)
	_, ok = p.Exception("E")
	assert.False(t, ok)
	_, err = p.Close(nil, 1, 1)
	assert.EqualError(t, err, "call event batch is already closed, expected Reset first")
	assert.Equal(t, data, packed.Data)

	p.Reset()
	assert.True(t, addCall(p, &call{kind: KindEnter, function: functionMain, lane: laneMain}))
}

func TestCloseRefusesImpossibleBarriersAndNumbers(t *testing.T) {
	for _, test := range []struct {
		name     string
		barriers []Barrier
		next     uint64
		received int64
		want     string
	}{
		{"too many barriers", make([]Barrier, MaxBarriers+1), 0, 0, "1025 barriers for one batch, expected at most 1024"},
		{"a barrier of no kind", []Barrier{{Cause: CauseEnded}}, 0, 0, "call event batch, byte 132: expected a kind of barrier, got 0"},
		{"a cause that only pairing sees", []Barrier{Point(1, CauseGap)}, 0, 0, "call event batch, byte 133: expected a cause of a barrier, got 10"},
		{"an interval that ends first", []Barrier{Point(1, CauseDropped), Interval(2, 1, CauseDropped)}, 0, 0,
			"call event batch, byte 140: expected a barrier from a number to one not below it, got 2 to 1"},
		{"next beyond the highest number", nil, MaxSequence + 1, 0,
			"call event batch, byte 40: expected a sequence number of at most 4611686018427387904, got 4611686018427387905"},
		{"received before 1970", nil, 0, -5, "call event batch, byte 48: expected a time after 1970, got -5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := NewPacker(testStream, MinBatchBytes)
			require.NoError(t, err)
			require.True(t, p.Add(&Event{Kind: KindSkip}))
			_, err = p.Close(test.barriers, test.next, test.received)
			require.EqualError(t, err, test.want)

			packed, err := p.Close(nil, 1, 1)
			require.NoError(t, err, "the batch is still open")
			var b Batch
			require.NoError(t, b.Unpack(packed.Data))
			assert.Equal(t, 1, b.Len())
		})
	}
}

func TestAnEventTooFarFromTheFirstGoesIntoTheNextBatch(t *testing.T) {
	const sequence, ticks = 1 << 40, 1 << 40
	for _, test := range []struct {
		name     string
		sequence uint64
		ticks    int64
		fits     bool
	}{
		{"numbers ahead, just", sequence + math.MaxInt32, ticks, true},
		{"numbers ahead", sequence + math.MaxInt32 + 1, ticks, false},
		{"numbers behind, just", sequence - 1<<31, ticks, true},
		{"numbers behind", sequence - 1<<31 - 1, ticks, false},
		{"ticks ahead, just", sequence, ticks + math.MaxInt32, true},
		{"ticks ahead", sequence, ticks + math.MaxInt32 + 1, false},
		{"ticks behind, just", sequence, ticks - 1<<31, true},
		{"ticks behind", sequence, ticks - 1<<31 - 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := NewPacker(testStream, MinBatchBytes)
			require.NoError(t, err)
			require.True(t, p.Add(&Event{Kind: KindSkip, Sequence: sequence, Time: ticks}))
			assert.Equal(t, test.fits, p.Add(&Event{Kind: KindSkip, Sequence: test.sequence, Time: test.ticks}))
			packed, err := p.Close(nil, 0, 0)
			require.NoError(t, err)
			require.NoError(t, new(Batch).Unpack(packed.Data))
		})
	}
}

// Each table fills a batch in turn, and every entry is in one of the batches.
func TestABatchIsFullByAnyOfItsTables(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, test := range []struct {
		name     string
		maxBytes int
		next     func(i int) call
	}{
		{"events", MinBatchBytes, func(i int) call {
			return call{kind: KindSkip, sequence: uint64(i)}
		}},
		{"functions", MinBatchBytes, func(i int) call {
			return call{kind: KindEnter, sequence: uint64(i), lane: laneMain, function: &Function{Text: fmt.Sprint(long, i)}}
		}},
		{"lanes", MinBatchBytes, func(i int) call {
			return call{kind: KindExitTop, sequence: uint64(i), lane: Lane{ID: uint64(i), Name: long}}
		}},
		{"exceptions", MinBatchBytes, func(i int) call {
			return call{kind: KindThrow, sequence: uint64(i), lane: laneMain, function: functionInit, exception: fmt.Sprint(long, i)}
		}},
		{"values", MinBatchBytes, func(i int) call {
			return call{kind: KindSkip, sequence: uint64(i), attributes: []attributeOf{{"k", StringValue(fmt.Sprint(long, i))}}}
		}},
		{"attributes", MinBatchBytes, func(i int) call {
			c := call{kind: KindSkip, sequence: uint64(i)}
			for range 50 {
				c.attributes = append(c.attributes, attributeOf{"k", BoolValue(true)})
			}
			return c
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls []call
			size := 0
			for i := 0; size < 3*test.maxBytes; i++ {
				c := test.next(i)
				size += eventSize + attributeSize*len(c.attributes) + len(c.exception) + len(c.lane.Name)
				if c.function != nil {
					size += len(c.function.Text)
				}
				for _, a := range c.attributes {
					size += len(a.value.text)
				}
				calls = append(calls, c)
			}
			batches := packWhole(t, testStream, test.maxBytes, calls)
			assert.GreaterOrEqual(t, len(batches), 3)
			var got []call
			for _, data := range batches[:len(batches)-1] {
				assert.Greater(t, len(data), test.maxBytes-MaxBarriers*barrierSize-3000, "bytes in a full batch")
				got = append(got, unpack(t, data, 64)...)
			}
			got = append(got, unpack(t, batches[len(batches)-1], 64)...)
			assert.Equal(t, inNanoseconds(testStream, calls), got)
		})
	}
}

// The buffer of the first batch has room for events of the second that is already used by its
// attributes.
func TestAttributesDoNotMakeTheNextBatchTooLarge(t *testing.T) {
	for _, maxBytes := range []int{MinBatchBytes, MaxBatchBytes} {
		p, err := NewPacker(testStream, maxBytes)
		require.NoError(t, err)
		for _, attributes := range []bool{false, true} {
			n := uint64(0)
			for p.Add(&Event{Kind: KindSkip, Sequence: n}) {
				if n++; attributes {
					p.Attribute("k", IntValue(1))
				}
			}
			barriers := make([]Barrier, MaxBarriers)
			for i := range barriers {
				barriers[i] = Point(uint64(i), CauseSuspended)
			}
			packed, err := p.Close(barriers, n, 1)
			require.NoError(t, err)
			require.LessOrEqual(t, len(packed.Data), maxBytes)
			require.NoError(t, new(Batch).Unpack(packed.Data))
			p.Reset()
		}
	}
}

// An entry of a table is useful only together with an event.
func TestAnEntryWithoutRoomForItsEventIsRefused(t *testing.T) {
	for n := range eventSize {
		p, err := NewPacker(testStream, MinBatchBytes)
		require.NoError(t, err)
		_, ok := p.Exception(strings.Repeat("x", n))
		require.True(t, ok)
		skip := Event{Kind: KindSkip}
		for p.maxBytes-p.size() >= 2*eventSize+exceptionSize {
			require.True(t, p.Add(&skip))
		}
		left := p.maxBytes - p.size() - eventSize - exceptionSize
		_, ok = p.Exception(strings.Repeat("y", left+1))
		require.False(t, ok, "one byte too many beside %d", n)
		_, ok = p.Exception(strings.Repeat("y", left))
		require.True(t, ok, "beside %d", n)
		require.True(t, p.Add(&skip))
		require.False(t, p.Add(&skip))
		require.Equal(t, p.maxBytes, p.size())
	}
}

// packWhole is pack for events with attributes. If the attributes of the last event don't fit, it
// packs the batch again without that event.
func packWhole(t *testing.T, stream Stream, maxBytes int, calls []call) (batches [][]byte) {
	for len(calls) > 0 {
		fits := 0
		p, err := NewPacker(stream, maxBytes)
		require.NoError(t, err)
		for fits < len(calls) && addCall(p, &calls[fits]) {
			fits++
		}
		require.Positive(t, fits)
		whole := pack(t, stream, maxBytes, calls[:fits])
		require.Len(t, whole, 1)
		batches, calls = append(batches, whole[0]), calls[fits:]
	}
	return batches
}

func TestATableHasAnEntryForEachIndex(t *testing.T) {
	p, err := NewPacker(testStream, MaxBatchBytes)
	require.NoError(t, err)
	// Exceptions without a name are the smallest entries: 4 bytes.
	last, n := uint16(0), 0
	for {
		// Four bytes of name are cheaper than a table of 65,535 long ones.
		index, ok := p.Exception(fmt.Sprintf("%04x", n))
		if !ok {
			break
		}
		last = index
		n++
	}
	assert.Equal(t, maxIndexes, n)
	assert.Equal(t, uint16(math.MaxUint16), last)
	index, ok := p.Exception("0000")
	assert.True(t, ok, "an entry of the table")
	assert.Equal(t, uint16(1), index)

	lane, _ := p.Lane(laneMain)
	function, _ := p.Function(functionInit)
	require.True(t, p.Add(&Event{Kind: KindThrow, Lane: lane, Function: function, Exception: last}))
	packed, err := p.Close(nil, 0, 0)
	require.NoError(t, err)
	assert.Equal(t, "fffe", unpack(t, packed.Data, 1)[0].exception)
}

func TestTheLongestNamesFitIntoTheSmallestBatch(t *testing.T) {
	long := func(c string) string { return strings.Repeat(c, 2*MaxNameBytes) }
	stream := testStream
	stream.TextKey = long("k")
	p, err := NewPacker(stream, MinBatchBytes)
	require.NoError(t, err)
	c := call{
		kind: KindUnwind, function: &Function{Qualified: long("q"), Display: long("d"), Text: long("t"), File: long("f")},
		lane: Lane{Name: long("l")}, exception: long("e"),
	}
	require.True(t, addCall(p, &c))
	assert.True(t, p.Rename(Rename{Name: long("r")}), "the rename of the event's lane")
	assert.False(t, p.Attribute(long("a"), StringValue(long("b"))), "no promise for more")
	barriers := make([]Barrier, MaxBarriers)
	for i := range barriers {
		barriers[i] = Point(uint64(i), CauseSuspended)
	}
	packed, err := p.Close(barriers, 1, 1)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(packed.Data), MinBatchBytes)

	var b Batch
	require.NoError(t, b.Unpack(packed.Data))
	assert.Len(t, b.Barriers, MaxBarriers)
	assert.Equal(t, strings.Repeat("k", MaxNameBytes), b.TextKey)
	got := resolve(&b, 1)[0]
	for what, s := range map[string]string{
		"q": got.function.Qualified, "d": got.function.Display, "t": got.function.Text, "f": got.function.File,
		"l": got.lane.Name, "e": got.exception,
	} {
		assert.Equal(t, strings.Repeat(what, MaxNameBytes), s)
	}
}

func TestImpossibleAttributesAreRefused(t *testing.T) {
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	assert.False(t, p.Attribute("k", IntValue(1)), "no event yet")
	require.True(t, p.Add(&Event{Kind: KindSkip}))
	assert.False(t, p.Attribute("k", Value{}), "a value without a type")
	assert.False(t, p.Attribute("k", Value{kind: valueTypeEnd}), "a value of an unknown type")
	assert.True(t, p.Attribute("k", IntValue(1)))
}

// Unpacking returns everything that was packed, in any order.
func TestRandomEventsSurvive(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		stream := Stream{ID: StreamID{byte(seed), 15: 1}, Epoch: 1<<60 + random.Int64N(1<<50), Resolution: 1 + random.Int64N(1_000_000)}
		calls := randomCalls(random, 1+random.IntN(3000))
		maxBytes := MinBatchBytes + random.IntN(MaxBatchBytes-MinBatchBytes+1)
		var got []call
		for _, data := range packWhole(t, stream, maxBytes, calls) {
			got = append(got, unpack(t, data, 1+random.IntN(500))...)
		}
		require.Equal(t, inNanoseconds(stream, calls), got, "seed %d", seed)
	}
}

func randomCalls(random *rand.Rand, n int) []call {
	word := func() string {
		letters := []rune("abc/.$;()é\u0000𝄞€")
		s := make([]rune, random.IntN(30))
		for i := range s {
			s[i] = letters[random.IntN(len(letters))]
		}
		return string(s)
	}
	functions := make([]*Function, 1+random.IntN(200))
	for i := range functions {
		functions[i] = &Function{Qualified: word(), Display: word(), Text: word(), File: word(), Line: random.Uint32()}
	}
	lanes := make([]Lane, 1+random.IntN(20))
	for i := range lanes {
		lanes[i] = Lane{ID: random.Uint64(), Name: word()}
	}
	values := []func() Value{
		func() Value { return StringValue(word()) },
		func() Value { return IntValue(random.Int64N(50) - 25) },
		func() Value { return DoubleValue(random.NormFloat64()) },
		func() Value { return BoolValue(random.IntN(2) == 0) },
	}
	sequence, ticks := uint64(random.Int64N(1<<50)), random.Int64N(1<<40)
	calls := make([]call, n)
	for i := range calls {
		// Mostly near, sometimes too far for the batch.
		spread := int64(1 << (4 + random.IntN(36)))
		c := call{
			kind: KindEnter + Kind(random.IntN(int(KindSkip))), line: random.Uint32(),
			sequence: uint64(max(0, int64(sequence)+random.Int64N(spread)-spread/2)), time: ticks + random.Int64N(spread) - spread/2,
		}
		if c.kind != KindSkip {
			c.lane = lanes[random.IntN(len(lanes))]
		}
		if c.kind != KindSkip && c.kind != KindExitTop {
			c.function = functions[random.IntN(len(functions))]
		}
		if c.kind == KindThrow || c.kind == KindUnwind {
			c.exception = word()
		}
		for range random.IntN(40) / 35 * random.IntN(5) {
			c.attributes = append(c.attributes, attributeOf{word(), values[random.IntN(len(values))]()})
		}
		calls[i] = c
	}
	return calls
}

func TestPackingAllocatesNothingForAnEvent(t *testing.T) {
	p, err := NewPacker(testStream, MaxBatchBytes)
	require.NoError(t, err)
	var b Batch
	events := make([]Event, 512)
	round := func() {
		p.Reset()
		lane, _ := p.Lane(laneMain)
		function, _ := p.Function(functionMain)
		for i := 0; p.Add(&Event{Kind: KindEnter, Sequence: uint64(i), Lane: lane, Function: function}); i++ {
		}
		packed, err := p.Close(nil, 0, 0)
		if err != nil || b.Unpack(packed.Data) != nil {
			t.Fatal("not packed and unpacked")
		}
		for first := 0; first < b.Len(); {
			first += b.Events(events, first)
		}
	}
	round()
	require.Greater(t, b.Len(), 50_000)
	// The one string of all names of a batch remains.
	assert.LessOrEqual(t, testing.AllocsPerRun(3, round), 2.0)
}

func TestAnEventIsAddedWithItsAttributeOrNotAtAll(t *testing.T) {
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	long := strings.Repeat("v", 5000)
	assert.False(t, p.AddWith(&Event{Kind: KindSkip}, []KeyValue{{"k", Value{}}}), "a value without a type")
	for bytes := range 2 * (eventSize + attributeSize) {
		p.Reset()
		n := 0
		for p.AddWith(&Event{Kind: KindSkip, Sequence: uint64(n)}, []KeyValue{{"k", StringValue(fmt.Sprint(n, long[:4000+bytes]))}}) {
			n++
		}
		// A batch that is full for an event with an attribute may have room for one without.
		for p.Add(&Event{Kind: KindSkip, Sequence: uint64(n)}) {
		}
		packed, err := p.Close(nil, uint64(n)+1, 0)
		require.NoError(t, err)
		require.LessOrEqual(t, len(packed.Data), MinBatchBytes)
		var b Batch
		require.NoError(t, b.Unpack(packed.Data))
		require.Len(t, b.Attributes, n)
		for i, a := range b.Attributes {
			require.EqualValues(t, i, a.Event)
			require.Equal(t, fmt.Sprint(i, long[:4000+bytes]), b.Values[a.Value].Str())
		}
	}
}

func TestAnEventIsAddedWithAllAttributesOrNone(t *testing.T) {
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	attributes := make([]KeyValue, MaxEventAttributes)
	for bytes := range 2 * (eventSize + MaxEventAttributes*attributeSize) {
		p.Reset()
		n := 0
		for {
			for i := range attributes {
				attributes[i] = KeyValue{fmt.Sprint("k", i), StringValue(fmt.Sprint(n, i, strings.Repeat("v", 300+bytes/10)))}
			}
			attributes[0].Value = StringValue(strings.Repeat("w", bytes))
			if !p.AddWith(&Event{Kind: KindSkip, Sequence: uint64(n)}, attributes) {
				break
			}
			n++
		}
		packed, err := p.Close(nil, uint64(n)+1, 0)
		require.NoError(t, err)
		require.LessOrEqual(t, len(packed.Data), MinBatchBytes)
		var b Batch
		require.NoError(t, b.Unpack(packed.Data))
		require.Equal(t, n, b.Len())
		require.Len(t, b.Attributes, n*MaxEventAttributes)
	}
}

func TestAPackerHoldsNoMoreOfALongTextThanABatch(t *testing.T) {
	p, err := NewPacker(testStream, MaxBatchBytes)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 12 {
		text := fmt.Sprint(i, strings.Repeat("x", 4<<20))
		lane, ok := p.Lane(Lane{Name: text})
		require.True(t, ok)
		_, ok = p.Exception(text)
		require.True(t, ok)
		require.True(t, p.AddWith(&Event{Kind: KindExitTop, Lane: lane}, []KeyValue{{"k", StringValue(text)}}))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Len(t, p.values.index, 13)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20))
	runtime.KeepAlive(p)
}

func TestAPackerForgetsFunctionsInTime(t *testing.T) {
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	for i := range 20_000 { // of 20 MB
		f := &Function{Qualified: fmt.Sprintf("demo.Generated%d.call", i), Text: strings.Repeat("x", 1000)}
		index, ok := p.Function(f)
		if !ok {
			p.Reset()
			index, ok = p.Function(f)
			require.True(t, ok)
			require.Zero(t, index)
		}
		again, ok := p.Function(f)
		require.True(t, ok)
		require.Equal(t, index, again)
		require.LessOrEqual(t, p.functions.knownBytes, maxKnownBytes+MinBatchBytes+20_000)
	}
	held := 0
	for f := range p.functions.known {
		held += len(f.Qualified) + len(f.Text)
	}
	assert.Less(t, held, maxKnownBytes+MinBatchBytes)
}
