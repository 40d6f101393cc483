// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/testkit/nested"
)

// written are profiles that a test writes, with the tables of their dictionary.
type written struct {
	pprofile.Profiles
	profile pprofile.Profile
}

// newWritten has tables with the texts, a function named by each of them, and a location for
// each function: all at the same indexes.
func newWritten(service string, texts ...string) *written {
	w := &written{Profiles: pprofile.NewProfiles()}
	rp := w.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr(attributeService, service)
	w.profile = rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	d := w.Dictionary()
	d.StackTable().AppendEmpty()
	for i, text := range append([]string{""}, texts...) {
		d.StringTable().Append(text)
		d.FunctionTable().AppendEmpty().SetNameStrindex(int32(i))
		d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(int32(i))
	}
	return w
}

// sample adds a sample of a stack, the leaf first.
func (w *written) sample(value int64, locations ...int32) pprofile.Sample {
	d := w.Dictionary()
	d.StackTable().AppendEmpty().LocationIndices().FromRaw(locations)
	s := w.profile.Samples().AppendEmpty()
	s.SetStackIndex(int32(d.StackTable().Len() - 1))
	s.Values().Append(value)
	return s
}

func (w *written) kind(kind, unit int32) {
	w.profile.SampleType().SetTypeStrindex(kind)
	w.profile.SampleType().SetUnitStrindex(unit)
}

// folded is the tree of the kind. The test's messages have no other samples of that kind.
func folded(t *testing.T, w *written, kind calltree.Kind) []calltree.Node {
	t.Helper()
	g := newBed(t)
	require.NoError(t, g.consumeProfiles(t.Context(), w.Profiles))
	snapshot, ok := g.store.Snapshot("s", kind)
	require.True(t, ok, "%v", g.store.Services())
	return snapshot.Nodes
}

func TestSamplesOfOneStackAreAddedUp(t *testing.T) {
	w := newWritten("s", "main", "work", "cpu", "nanoseconds")
	w.kind(3, 4)
	w.sample(5, 2, 1)
	w.sample(7, 2, 1).TimestampsUnixNano().Append(1) // one value, at a time
	w.profile.Samples().At(0).CopyTo(w.profile.Samples().AppendEmpty())
	counted := w.profile.Samples().AppendEmpty() // no value: 1 at each time
	counted.SetStackIndex(1)
	counted.TimestampsUnixNano().Append(1, 2, 3)
	w.sample(1, 1).Values().Append(10) // two values
	assert.Equal(t, []calltree.Node{
		{Parent: -1, Function: "main", Calls: 2, Total: 31, Self: 11},
		{Parent: 0, Function: "work", Calls: 6, Total: 20, Self: 20},
	}, folded(t, w, calltree.Kind{Type: "cpu", Unit: "nanoseconds"}))
}

func TestFunctionsThatWereInlinedAreFrames(t *testing.T) {
	w := newWritten("s", "main", "outer", "inlined", "file.go", "cpu")
	w.kind(5, 0)
	location := w.Dictionary().LocationTable().AppendEmpty()
	location.Lines().AppendEmpty().SetFunctionIndex(3)
	location.Lines().AppendEmpty().SetFunctionIndex(2)
	f := w.Dictionary().FunctionTable().At(2)
	f.SetFilenameStrindex(4)
	f.SetStartLine(12)
	location.Lines().At(0).SetLine(99)
	w.sample(1, 6, 1)
	assert.Equal(t, []calltree.Node{
		{Parent: -1, Function: "main", Total: 1},
		{Parent: 0, Function: "outer", File: "file.go", Line: 12, Total: 1},
		{Parent: 1, Function: "inlined", Line: 99, Calls: 1, Total: 1, Self: 1},
	}, folded(t, w, calltree.Kind{Type: "cpu"}))
}

// Most of a message counts, but no attribute, however deep it is nested: measuring one must
// not recurse.
func TestTheSizeOfAMessageIsWithoutItsAttributes(t *testing.T) {
	w := newWritten("s", "main", "work", "cpu")
	w.kind(3, 0)
	for i := range 1000 {
		w.sample(int64(i), 1, 2)
	}
	size, all := sizeOf(w.Profiles), new(pprofile.ProtoMarshaler).ProfilesSize(w.Profiles)
	assert.LessOrEqual(t, size, all)
	assert.Greater(t, size, all/2)

	request, levels := nested.Protobuf(nested.At(nested.Profiles, "attribute table"), nested.Lists, 4<<20, nil)
	require.Greater(t, levels, 400_000)
	read := pprofileotlp.NewExportRequest()
	require.NoError(t, read.UnmarshalProto(request))
	assert.Less(t, sizeOf(read.Profiles()), 100)
	require.NoError(t, newBed(t).consumeProfiles(t.Context(), read.Profiles()))
}

// A message can name one location, or one stack, many times. The number of frames that are read,
// and so the time to fold them, is in proportion to its size.
func TestTheSizeOfAMessageBoundsItsFrames(t *testing.T) {
	w := newWritten("s", "main", "work")
	inlined := w.Dictionary().LocationTable().AppendEmpty()
	for range maxInlined {
		inlined.Lines().AppendEmpty().SetFunctionIndex(1)
	}
	deep := slices.Repeat([]int32{1}, calltree.MaxDepth)
	w.sample(1, deep...)
	for i := range 3000 {
		w.sample(1, slices.Repeat([]int32{3}, 20+i%20)...) // of 1,000 frames and less
		// The deep stack in one more service.
		rp := w.ResourceProfiles().AppendEmpty()
		rp.Resource().Attributes().PutStr(attributeService, numbered(i).String())
		rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty().SetStackIndex(1)
	}
	size := sizeOf(w.Profiles)
	g, r := newBed(t), newProfileReader(w.Profiles, 1024)
	r.read(g.store, w.Profiles)
	require.Len(t, r.found, 6001)
	frames, cut := 0, 0
	for _, at := range r.found {
		stack, isCut := r.frameStack(at.stack)
		frames += len(stack)
		require.NotEmpty(t, stack)
		if isCut {
			cut++
		}
	}
	assert.LessOrEqual(t, frames, someFrames+framesOfByte*size+calltree.MaxDepth+leastFrames*len(r.found))
	assert.Greater(t, frames, someFrames+framesOfByte*size-calltree.MaxDepth-maxInlined)
	assert.Positive(t, cut)
	stack, isCut := r.frameStack(1)
	assert.True(t, isCut)
	assert.Len(t, stack, leastFrames)

	// An honest message is read as a whole.
	honest := newWritten("s", "main", "work", "cpu")
	honest.kind(3, 0)
	for range 1000 {
		honest.sample(1, slices.Repeat([]int32{2, 1}, 100)...)
	}
	require.NoError(t, g.consumeProfiles(t.Context(), honest.Profiles))
	assert.Zero(t, g.store.Counters().CutSamples)
}

func TestFramesWithoutAFunctionHaveNames(t *testing.T) {
	w := newWritten("s", "system", "/usr/lib/libc.so.6", "cpu")
	w.kind(3, 0)
	d := w.Dictionary()
	d.MappingTable().AppendEmpty()
	d.MappingTable().AppendEmpty().SetFilenameStrindex(2)
	address := func(mapping int32, address uint64) {
		l := d.LocationTable().AppendEmpty()
		l.SetMappingIndex(mapping)
		l.SetAddress(address)
		w.sample(1, int32(d.LocationTable().Len()-1))
	}
	address(1, 0xff)
	address(0, 0xfe)
	address(77, 0xfd)
	address(1, 0)
	named := d.FunctionTable().AppendEmpty()
	named.SetSystemNameStrindex(1)
	d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(int32(d.FunctionTable().Len() - 1))
	w.sample(1, int32(d.LocationTable().Len()-1))
	var names []string
	for _, n := range folded(t, w, calltree.Kind{Type: "cpu"}) {
		names = append(names, n.Function)
	}
	assert.ElementsMatch(t, []string{"libc.so.6+0xff", "0xfe", "0xfd", noFunction, "system"}, names)
}

func TestIndexesOutsideOfTablesAreIgnored(t *testing.T) {
	const far = 1 << 30
	for _, index := range []int32{-1, far, -far} {
		w := newWritten("s", "main", "cpu")
		w.kind(index, index)
		w.sample(1, index, 1)
		w.Dictionary().LocationTable().At(2).Lines().At(0).SetFunctionIndex(index)
		w.sample(1, 2).AttributeIndices().Append(index)
		w.Dictionary().FunctionTable().At(0).SetNameStrindex(index)
		w.Dictionary().AttributeTable().AppendEmpty().SetKeyStrindex(index)
		w.sample(1, 0).AttributeIndices().Append(0)
		w.sample(1, 1).SetStackIndex(index)
		assert.Equal(t, []calltree.Node{
			{Parent: -1, Function: noFunction, Calls: 2, Total: 2, Self: 2},
			{Parent: -1, Function: "(parent not seen)", Mark: calltree.MissingParent, Calls: 1, Total: 1, Self: 1},
			{Parent: -1, Function: "main", Total: 1},
			{Parent: 2, Function: noFunction, Calls: 1, Total: 1, Self: 1},
		}, folded(t, w, calltree.Kind{Type: noFunction}))
	}
}

func TestStacksAndInliningAreBounded(t *testing.T) {
	w := newWritten("s", "main", "f", "cpu")
	w.kind(3, 0)
	lines := w.Dictionary().LocationTable().At(2).Lines()
	for range 1000 {
		lines.AppendEmpty().SetFunctionIndex(2)
	}
	w.sample(1, 2, 1)
	assert.Len(t, folded(t, w, calltree.Kind{Type: "cpu"}), maxInlined+1)

	deep := make([]int32, 100_000)
	for i := range deep {
		deep[i] = 2
	}
	w.sample(1, deep...)
	nodes := folded(t, w, calltree.Kind{Type: "cpu"})
	assert.Less(t, len(nodes), maxInlined+1+calltree.MaxDepth)
	cut := 0
	for _, n := range nodes {
		if n.Mark == calltree.MissingParent {
			cut++
		}
	}
	assert.Equal(t, 1, cut)
}

// A stack of objects of several classes is one path, with the classes below it.
func TestAStackEndsWithTheClassOfItsObjects(t *testing.T) {
	w := newWritten("s", "main", "work", "alloc_objects", "count", attributeClass)
	w.kind(3, 4)
	class := func(value string) int32 {
		a := w.Dictionary().AttributeTable().AppendEmpty()
		a.SetKeyStrindex(5)
		a.Value().SetStr(value)
		return int32(w.Dictionary().AttributeTable().Len() - 1)
	}
	text, hash, text2 := class("String"), class("Hash"), class("String")
	number := w.Dictionary().AttributeTable().AppendEmpty()
	number.SetKeyStrindex(5)
	number.Value().SetInt(7)
	w.sample(5, 2, 1).AttributeIndices().Append(text)
	for attribute, value := range map[int32]int64{hash: 7, text2: 10, 3: 1, 99: 1, -1: 1} {
		s := w.profile.Samples().AppendEmpty()
		w.profile.Samples().At(0).CopyTo(s)
		s.AttributeIndices().FromRaw([]int32{attribute})
		s.Values().FromRaw([]int64{value})
	}
	nowhere := w.profile.Samples().AppendEmpty()
	nowhere.AttributeIndices().Append(hash)
	nowhere.Values().Append(2)
	assert.Equal(t, []calltree.Node{
		{Parent: -1, Function: "main", Total: 25},
		{Parent: 0, Function: "work", Calls: 3, Total: 25, Self: 3},
		{Parent: 1, Function: "String", Calls: 2, Total: 15, Self: 15},
		{Parent: 1, Function: "Hash", Calls: 1, Total: 7, Self: 7},
		{Parent: -1, Function: "(parent not seen)", Mark: calltree.MissingParent, Total: 2},
		{Parent: 4, Function: "Hash", Calls: 1, Total: 2, Self: 2},
	}, folded(t, w, calltree.Kind{Type: "alloc_objects", Unit: "count"}))
}

func TestThreadsOfSamplesAreCounted(t *testing.T) {
	w := newWritten("s", "main", attributeThreadID, attributeThreadName, "cpu")
	w.kind(4, 0)
	attributes := w.Dictionary().AttributeTable()
	for _, id := range []int64{7, 8} {
		a := attributes.AppendEmpty()
		a.SetKeyStrindex(2)
		a.Value().SetInt(id)
	}
	name := attributes.AppendEmpty()
	name.SetKeyStrindex(3)
	name.Value().SetStr("worker")
	w.sample(1, 1).AttributeIndices().Append(0, 2)
	w.sample(1, 1).AttributeIndices().Append(1)
	w.sample(1, 1)
	g := newBed(t)
	require.NoError(t, g.consumeProfiles(t.Context(), w.Profiles))
	assert.Equal(t, 2, g.store.Services()[0].Threads)
	assert.EqualValues(t, 3, g.store.Counters().Samples)
}

// A message can name a deep stack with few bytes, again and again.
func TestAStackIsWalkedOnceInAMessage(t *testing.T) {
	const samples, profiles, resources, depth = 20, 10, 10, 1000
	w := newWritten("s", "main", attributeThreadID, "cpu")
	w.kind(3, 0)
	w.sample(1, slices.Repeat([]int32{1}, depth)...)
	for i := range samples {
		thread := w.Dictionary().AttributeTable().AppendEmpty()
		thread.SetKeyStrindex(2)
		thread.Value().SetInt(int64(i))
		again := w.profile.Samples().AppendEmpty()
		w.profile.Samples().At(0).CopyTo(again)
		again.AttributeIndices().Append(int32(w.Dictionary().AttributeTable().Len() - 1))
	}
	all := w.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	for range profiles - 1 {
		w.profile.CopyTo(all.AppendEmpty())
	}
	for range resources - 1 {
		w.ResourceProfiles().At(0).CopyTo(w.ResourceProfiles().AppendEmpty())
	}
	g := newBed(t)
	r := newProfileReader(w.Profiles, 1024)
	r.read(g.store, w.Profiles)
	assert.Len(t, r.found, 1, "stacks to walk")
	r.fold(g.store)
	snapshot, _ := g.store.Snapshot("s", calltree.Kind{Type: "cpu"})
	sum := (samples + 1) * profiles * resources
	assert.EqualValues(t, sum, snapshot.Nodes[0].Total)
	assert.EqualValues(t, sum, g.store.Counters().Samples)
	assert.Equal(t, samples, g.store.Services()[0].Threads)
}

// A message names a text with a few bytes, as many times as it has locations. The text is cut
// before frames are made of it.
func TestLongNamesOfObjectsAreCutFirst(t *testing.T) {
	const locations, stacks = 990, 5
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	d.StringTable().Append("", "/lib/"+strings.Repeat("m", 300_000))
	d.MappingTable().AppendEmpty().SetFilenameStrindex(1)
	profile := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for s := range stacks {
		stack := d.StackTable().AppendEmpty()
		for i := range locations {
			d.LocationTable().AppendEmpty().SetAddress(uint64(1 + s*locations + i))
			stack.LocationIndices().Append(int32(s*locations + i))
		}
		sample := profile.Samples().AppendEmpty()
		sample.SetStackIndex(int32(s))
		sample.Values().Append(1)
	}
	g := newBed(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, g.consumeProfiles(t.Context(), pd))
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), "bytes")
	assert.EqualValues(t, stacks, g.store.Counters().Samples)
}

// Service and kind are looked up for each sample, so they are cut to a short text once.
func TestLongNamesOfServicesAndKindsAreCutOnce(t *testing.T) {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", strings.Repeat("k", 100_000))
	pd.Dictionary().StackTable().AppendEmpty()
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr(attributeService, strings.Repeat("s", 100_000))
	profile := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	profile.SampleType().SetTypeStrindex(1)
	profile.SampleType().SetUnitStrindex(1)
	for range 1000 {
		profile.Samples().AppendEmpty().Values().Append(1)
	}
	g := newBed(t)
	r := newProfileReader(pd, g.config.MaxNameBytes)
	r.read(g.store, pd)
	name := func(letter string) string { return strings.Repeat(letter, g.config.MaxNameBytes) }
	assert.Equal(t, []source{{service: name("s"), kind: calltree.Kind{Type: name("k"), Unit: name("k")}}}, r.sources)
	r.fold(g.store)
	assert.EqualValues(t, 1000, g.store.Counters().Samples)
	assert.Len(t, g.store.Services(), 1)
}
