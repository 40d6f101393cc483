// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/capture"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

func TestClassesAreBoundedAndWithoutAddresses(t *testing.T) {
	n := newNames(3)
	name := func(class string) string { return n.texts[n.class([]byte(class))] }
	assert.Equal(t, "String", name("String"))
	assert.Equal(t, "#<Class>", name("#<Class:0x00007f01999002a8>"))
	assert.Equal(t, n.class([]byte("#<Class:0x1>")), n.class([]byte("#<Class:0x2>")), "one for all")
	assert.Equal(t, "#<Class:#<Shop>>", name("#<Class:#<Shop:0x00007f01999002a8>>"))
	assert.Equal(t, int64(0), n.folded)
	assert.Equal(t, "other", name("Array"), "there is no room")
	assert.Equal(t, "other", name("#<Module:0x1>"))
	assert.Equal(t, int64(2), n.folded)
	assert.Equal(t, "String", name("String"))
	assert.Equal(t, "hidden", n.texts[n.class(nil)])
	assert.Equal(t, "unknown", n.texts[n.file(nil)])
}

func TestTextsAreValidAndNotTooLong(t *testing.T) {
	for _, raw := range []string{"", "a", "\xff\xfe", strings.Repeat("é", maxTextBytes), strings.Repeat("\x80", 3*maxTextBytes)} {
		text := validText([]byte(raw))
		assert.True(t, utf8.ValidString(text))
		assert.LessOrEqual(t, len(text), maxTextBytes+utf8.UTFMax)
	}
	assert.Equal(t, strings.Repeat("é", maxTextBytes/2), validText([]byte(strings.Repeat("é", maxTextBytes))))
}

func TestObjectsThatAreTooManyAreForgottenOldestFirst(t *testing.T) {
	o := newObjects(newNames(10), 4)
	for id := range uint64(7) {
		o.create(id, []byte("A"))
	}
	assert.LessOrEqual(t, o.tracked.len(), 4)
	assert.EqualValues(t, 4, o.tracked.forgotten)
	for id := range uint64(7) {
		o.destroy(id)
	}
	o.destroy(6) // twice
	assert.EqualValues(t, 7, o.created[firstName])
	assert.EqualValues(t, 3, o.destroyed[firstName], "the last ones")
	assert.EqualValues(t, 5, o.destroyed[nameUnknown])
	assert.Zero(t, o.tracked.len())
}

func TestGarbageCollectionsArePaired(t *testing.T) {
	const start, mark, sweep = rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep
	type event struct {
		at   int64
		what rbkit.Kind
	}
	cases := map[string]struct {
		events                    []event
		want                      []cycle
		noStart, noEnd, stepsBack int64
		marked, whole             uint64
	}{
		"one":                         {events: []event{{1, start}, {3, mark}, {9, sweep}}, want: []cycle{{1, 1, 3, 9}}, marked: 1, whole: 1},
		"one without a length":        {events: []event{{1, start}, {1, mark}, {1, sweep}}, want: []cycle{{1, 1, 1, 1}}, marked: 1, whole: 1},
		"an end without a start":      {events: []event{{1, sweep}, {2, start}, {3, mark}, {4, sweep}}, want: []cycle{{1, 2, 3, 4}}, noStart: 1, marked: 1, whole: 1},
		"marking without a start":     {events: []event{{1, mark}}, noStart: 1},
		"a start without an end":      {events: []event{{1, start}, {2, start}, {3, mark}, {4, sweep}}, want: []cycle{{2, 2, 3, 4}}, noEnd: 1, marked: 1, whole: 1},
		"sweeping that does not end":  {events: []event{{1, start}, {2, mark}, {3, start}}, noEnd: 1, marked: 1},
		"marking that does not end":   {events: []event{{1, start}, {2, sweep}, {3, mark}}, noStart: 2},
		"marking that ends twice":     {events: []event{{1, start}, {2, mark}, {3, mark}, {4, sweep}}, want: []cycle{{1, 1, 2, 4}}, noStart: 1, marked: 1, whole: 1},
		"a clock set back in marking": {events: []event{{5, start}, {3, mark}, {9, sweep}}, noStart: 1, stepsBack: 1},
		"a clock set back in sweeping": {events: []event{{5, start}, {6, mark}, {4, sweep}, {7, start}, {8, mark}, {9, sweep}},
			want: []cycle{{2, 7, 8, 9}}, stepsBack: 1, marked: 2, whole: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []cycle
			cycles := cycles{finished: func(c *cycle) { got = append(got, *c) }}
			for _, e := range c.events {
				cycles.event(e.at, e.what)
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, [...]int64{c.noStart, c.noEnd, c.stepsBack}, [...]int64{cycles.noStart, cycles.noEnd, cycles.stepsBack})
			assert.Equal(t, [...]uint64{c.marked, c.whole}, [...]uint64{cycles.marking.count, cycles.whole.count})
		})
	}
}

func TestSpansHaveALengthAndChildrenLieInside(t *testing.T) {
	e := unstartedBed(t, func(_ *bed, c *Config) { c.Servers = []ServerConfig{{Publish: "localhost:5555"}} }).receiver.env
	of := newOrigin(e.config, &e.config.Servers[0], nil, nil, recorded, 0)
	const last = math.MaxInt64 / 1_000_000
	var parcels []cycleParcel
	for i, c := range []cycle{{1, 5, 5, 5}, {2, 5, 7, 7}, {3, 5, 5, 9}, {4, last, last, last}} {
		require.EqualValues(t, i+1, c.number)
		parcels = append(parcels, cycleParcel{cycle: c, origin: of, resource: of.resource})
	}
	traces := e.traces(parcels)
	require.Equal(t, 1, traces.ResourceSpans().Len())
	spans := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	ids := map[string]bool{}
	for i := 0; i < spans.Len(); i += spansOfCycle {
		gc, mark, sweep := spans.At(i), spans.At(i+1), spans.At(i+2)
		ids[gc.TraceID().String()] = true
		for _, s := range []uint64{uint64(mark.StartTimestamp()), uint64(gc.StartTimestamp())} {
			assert.Equal(t, uint64(parcels[i/3].cycle.start)*1e6, s)
		}
		assert.Less(t, gc.StartTimestamp(), mark.EndTimestamp())
		assert.Equal(t, mark.EndTimestamp(), sweep.StartTimestamp())
		assert.Less(t, sweep.StartTimestamp(), sweep.EndTimestamp())
		assert.Equal(t, gc.EndTimestamp(), sweep.EndTimestamp())
		for _, child := range []int{i + 1, i + 2} {
			assert.Equal(t, gc.SpanID(), spans.At(child).ParentSpanID())
			assert.Equal(t, gc.TraceID(), spans.At(child).TraceID())
		}
		assert.True(t, gc.ParentSpanID().IsEmpty())
	}
	assert.Len(t, ids, len(parcels), "each has a trace of its own")
}

// read is the last event of a message with what write writes.
func read(t testing.TB, dialect rbkit.Dialect, write func(*rbkit.Collection) error) rbkit.Event {
	t.Helper()
	c := rbkit.NewCollection(dialect)
	require.NoError(t, write(c))
	var r rbkit.Reader
	require.NoError(t, r.Open(dialect, c.AppendTo(nil, 1, 0)))
	for r.Next() {
	}
	require.NoError(t, r.Err())
	return *r.Event()
}

// dumper makes objects of dumps, with references.
func dumper(t testing.TB) func(id uint64, to ...uint64) *rbkit.Object {
	return func(id uint64, to ...uint64) *rbkit.Object {
		e := read(t, rbkit.Released, func(c *rbkit.Collection) error {
			return c.Dump(1, 1, 1, []rbkit.DumpObject{{ID: id, Class: []byte("A"), References: to, Size: 10}})
		})
		return &e.Object
	}
}

func TestDumpsArePutTogether(t *testing.T) {
	dumped := dumper(t)
	now := recorded
	part := func(d *dumps, correlation, complete uint64, objects ...*rbkit.Object) {
		d.part(1, rbkit.Part{Correlation: correlation, Objects: complete, Here: len(objects)}, now)
		for _, o := range objects {
			d.object(o)
		}
	}
	cases := map[string]struct {
		do                         func(d *dumps)
		complete, incomplete, live int64
		nowhere, dangling          int64
	}{
		"in two parts":                  {do: func(d *dumps) { part(d, 1, 3, dumped(1, 2), dumped(2, 1)); part(d, 1, 3, dumped(3, 9, 9, 1, 3)) }, complete: 1, live: 3, nowhere: 2, dangling: 1},
		"without objects":               {do: func(d *dumps) { part(d, 1, 0) }, complete: 1},
		"whose last part does not come": {do: func(d *dumps) { part(d, 1, 3, dumped(1, 5)); d.attend(now.Add(dumpPatience)) }, incomplete: 1, nowhere: 1, dangling: 1},
		"that another one follows":      {do: func(d *dumps) { part(d, 1, 3, dumped(1, 5)); part(d, 2, 1, dumped(1, 1)) }, complete: 1, incomplete: 1, live: 1},
		"that is not over":              {do: func(d *dumps) { part(d, 1, 3, dumped(1)); d.attend(now.Add(dumpPatience - 1)) }},
		"that has more than it says":    {do: func(d *dumps) { part(d, 1, 1, dumped(1), dumped(2)) }, complete: 1, live: 1},
		"that ends with the server":     {do: func(d *dumps) { part(d, 1, 3, dumped(1)); d.finish() }, incomplete: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var last *dump
			objects := newObjects(newNames(10), 10)
			d := &dumps{classes: objects.classes, tracked: &objects.tracked, maxObjects: 10, finished: func(d *dump) { last = d }}
			c.do(d)
			assert.Equal(t, [...]int64{c.complete, c.incomplete}, [...]int64{d.complete, d.incomplete})
			live := int64(0)
			for _, n := range d.live.objects {
				live += n
			}
			assert.Equal(t, c.live, live)
			if last != nil {
				nowhere, dangling, known := last.references.nowhere()
				assert.True(t, known)
				assert.Equal(t, [...]int64{c.nowhere, c.dangling}, [...]int64{nowhere, dangling})
			}
		})
	}
}

func trackedIDs(t *tracked) (ids []uint64) {
	for _, g := range t.generations() {
		ids = slices.AppendSeq(ids, maps.Keys(g))
	}
	slices.Sort(ids)
	return ids
}

func TestADumpSaysWhichObjectsAreStillThere(t *testing.T) {
	dumped := dumper(t)
	for name, c := range map[string]struct {
		announced uint64
		want      []uint64
	}{
		"complete":   {3, []uint64{2, 3, 5, 6}},
		"incomplete": {4, []uint64{1, 2, 3, 4, 5, 6}},
	} {
		o := newObjects(newNames(10), 8) // so that there are two generations
		d := &dumps{classes: o.classes, tracked: &o.tracked}
		for id := range uint64(5) {
			o.create(1+id, []byte("A"))
		}
		o.destroy(5)
		o.create(5, nil) // hidden, which dumps may leave out
		d.part(1, rbkit.Part{Correlation: 1, Objects: c.announced, Here: 2}, recorded)
		d.object(dumped(2))
		o.create(6, []byte("A")) // after the dump was made
		d.part(1, rbkit.Part{Correlation: 1, Objects: c.announced, Here: 1}, recorded)
		d.object(dumped(3))
		d.object(dumped(7)) // was there before anything was told
		d.finish()
		assert.Equal(t, c.want, trackedIDs(&o.tracked), name)
		// What a dump left out that was not complete is left out by the next one as well.
		d.part(1, rbkit.Part{Correlation: 2, Objects: 1, Here: 1}, recorded)
		d.object(dumped(6))
		assert.Equal(t, []uint64{5, 6}, trackedIDs(&o.tracked), name)
		o.destroy(6)
		o.destroy(3)
		assert.EqualValues(t, 2, o.destroyed[firstName], "5 and 6")
		assert.EqualValues(t, 1, o.destroyed[nameUnknown], "3")
	}
}

func TestReferencesThatAreTooManyAreNotChecked(t *testing.T) {
	dumped := dumper(t)
	for name, fill := range map[string]func(r *references){
		"objects":    func(r *references) { r.object(dumped(1)); r.object(dumped(2)); r.object(dumped(3)) },
		"references": func(r *references) { r.object(dumped(1, 11, 12, 13, 14, 15, 16, 17, 18, 19)) },
	} {
		r := newReferences(2)
		fill(&r)
		_, _, known := r.nowhere()
		assert.False(t, known, name)
		r.object(dumped(4, 1))
		assert.Positive(t, r.total)
	}
}

func TestEveryObjectOfADumpIsARecordOnRequest(t *testing.T) {
	got := mapCapture(t, openCapture(t, "released-30s"), func(_ *bed, c *Config) { c.DumpReferences = true })
	objects, references := 0, 0
	for _, resource := range got.logs.ResourceLogs().All() {
		for _, r := range resource.ScopeLogs().At(0).LogRecords().All() {
			if r.EventName() == eventObject {
				objects++
				if v, ok := r.Attributes().Get(attributeReferences); ok {
					references += v.Slice().Len()
					assert.LessOrEqual(t, v.Slice().Len(), maxReferences)
				}
				if v, ok := r.Attributes().Get(attributeMoreRefs); ok {
					references += int(v.Int())
				}
			}
		}
	}
	assert.Equal(t, 16751, objects)
	last := got.logs.ResourceLogs().At(got.logs.ResourceLogs().Len() - 1).ScopeLogs().At(0).LogRecords().At(0)
	assert.Equal(t, eventDump, last.EventName(), "the summary comes last")
	all, _ := last.Attributes().Get(attributeDumpRefs)
	assert.EqualValues(t, references, all.Int())
}

func TestWhatAServerDoesNotSayOfAnObjectIsNotInItsRecord(t *testing.T) {
	b := unstartedBed(t, func(_ *bed, c *Config) { c.Servers = []ServerConfig{{Publish: "localhost:5555"}} })
	env := b.receiver.env
	records := objectRecords{env: env, origin: newOrigin(env.config, &env.config.Servers[0], nil, nil, recorded, 0)}
	records.add(&rbkit.Object{ID: 20}, recorded)
	records.add(&rbkit.Object{ID: 40, Sized: true, Line: 3, File: []byte("a.rb")}, recorded)
	keys := func(i int) []string {
		return slices.Sorted(maps.Keys(records.records.At(i).Attributes().AsRaw()))
	}
	assert.Equal(t, []string{attributeObjectID, attributeClass}, keys(0))
	assert.Subset(t, keys(1), []string{attributeObjectSize, attributeLine, attributeFile})
}

func TestAllocationsAreBoundedAndDontOverflow(t *testing.T) {
	a := newAllocations(newNames(10), &LimitsConfig{MaxFiles: 10, MaxSites: 2})
	for i := range 4 {
		a.add(&rbkit.Allocation{File: fmt.Appendf(nil, "%d.rb", i), Class: []byte("A"), Count: 2, Size: 40})
	}
	assert.Equal(t, allocated{4, 160}, a.sites[site{nameOther, nameOther}])
	assert.EqualValues(t, 2, a.folded)
	assert.Len(t, a.sites, 3)
	for range 2 {
		a.add(&rbkit.Allocation{File: []byte("0.rb"), Class: []byte("A"), Count: math.MaxUint64, Size: math.MaxUint64})
	}
	assert.Equal(t, allocated{math.MaxInt64, math.MaxInt64}, a.sites[site{firstName, firstName}])
}

func TestOnlyWholeNumbersAreStatistics(t *testing.T) {
	for _, c := range []struct {
		number rbkit.Number
		want   int64
		whole  bool
	}{
		{rbkit.Number{Integer: -5}, -5, true},
		{rbkit.Number{Float: 5, IsFloat: true}, 5, true},
		{rbkit.Number{Float: 5.5, IsFloat: true}, 0, false},
		{rbkit.Number{Float: 1 << 53, IsFloat: true}, 0, false},
		{rbkit.Number{Float: math.Inf(-1), IsFloat: true}, 0, false},
		{rbkit.Number{Float: math.NaN(), IsFloat: true}, 0, false},
	} {
		got, whole := wholeNumber(c.number)
		assert.Equal(t, c.whole, whole, c.number)
		assert.Equal(t, c.want, got, c.number)
	}
}

func TestAProcessIDThatNoProcessHasIsLeftOut(t *testing.T) {
	for pid, want := range map[uint64]bool{0: false, 1: true, math.MaxInt32: true, math.MaxInt32 + 1: false, math.MaxUint64: false} {
		of := newOrigin(createDefaultConfig(), &ServerConfig{Publish: "localhost:5555"}, &rbkit.HandshakeReply{PID: pid}, nil, recorded, 0)
		_, got := of.resource.Attributes().Get(attributeProcessID)
		assert.Equal(t, want, got, pid)
	}
}

func TestStacksThatAreTooDeepAreDroppedAndCounted(t *testing.T) {
	frames := []rbkit.Frame{{Method: []byte("leaf"), File: []byte("a.rb")}, {Method: []byte("root"), File: []byte("a.rb")}}
	c := rbkit.NewCollection(rbkit.Documented)
	require.NoError(t, c.Sample(1, frames))
	require.NoError(t, c.Sample(1, frames[:1]))
	require.NoError(t, c.Snapshot(1, []rbkit.Stack{{ID: 1, Frames: frames}, {ID: 2, Frames: frames[:1]}}, []rbkit.FileAllocations{{
		File: []byte("a.rb"), Allocations: []rbkit.PlaceAllocations{{Line: 7, Count: 5, Size: 40, Stacks: []rbkit.StackCount{{ID: 1, Count: 2}, {ID: 2, Count: 1}}}},
	}}))
	var with *bed
	got := mapCapture(t, &capture.Capture{Messages: []capture.Message{{Data: c.AppendTo(nil, 1, 0)}}},
		func(b *bed, c *Config) { with, c.Limits.MaxFrames = b, 1 })
	assert.EqualValues(t, 2, got.state.samples)
	assert.EqualValues(t, 1, with.counter("samples_dropped"))
	values := map[string][]int64{}
	for _, p := range got.profiles {
		checkValid(t, p)
		for _, one := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			kind := p.Dictionary().StringTable().At(int(one.SampleType().TypeStrindex()))
			for _, s := range one.Samples().All() {
				values[kind] = append(values[kind], s.Values().At(0))
			}
		}
	}
	assert.Equal(t, map[string][]int64{typeSamples: {1}, typeObjects: {1, 4}, typeSpace: {40, 160}}, values, "what a deep stack allocated counts without it")
}

// Every metric of the statistics has a key, and they are told apart.
func TestEveryStatisticHasItsMetric(t *testing.T) {
	builder := metadata.NewMetricsBuilder(metadata.NewDefaultMetricsBuilderConfig(), receivertest.NewNopSettings(metadata.Type))
	for key := range statMetrics {
		stats{key: 42}.record(builder, 1)
		metrics := builder.Emit()
		assert.Equal(t, 1, metrics.DataPointCount(), key)
	}
	stats{"something_new": 1}.record(builder, 1)
	assert.Equal(t, map[string]int64{"something_new": 1}, pointsOf(builder.Emit(), "ruby.gc.other", "ruby.gc.stat.key"))
	s := stats{}
	set := func(stats ...rbkit.Stat) {
		s.set(read(t, rbkit.Released, func(c *rbkit.Collection) error { return c.Stats(1, stats) }).Stats)
	}
	set(rbkit.Stat{Name: "a", Value: 1}, rbkit.Stat{Name: "b", Missing: true}, rbkit.Stat{Name: "c", Value: math.MaxUint64})
	assert.Equal(t, stats{"a": 1}, s)
	set(rbkit.Stat{Name: "a", Missing: true})
	assert.Empty(t, s, "what is no longer sent is no longer known")
}

func TestDurationsGoToTheirBuckets(t *testing.T) {
	var h histogram
	for _, d := range []time.Duration{0, time.Millisecond, 1001 * time.Microsecond, time.Minute, time.Hour} {
		h.add(d)
	}
	assert.EqualValues(t, 2, h.buckets[0])
	assert.EqualValues(t, 1, h.buckets[1])
	assert.EqualValues(t, 1, h.buckets[len(histogramBounds)-1])
	assert.EqualValues(t, 1, h.buckets[len(histogramBounds)])
	assert.Equal(t, [...]time.Duration{0, time.Hour}, [...]time.Duration{h.min, h.max})
	assert.True(t, slices.IsSorted(histogramBounds[:]))
}

// checkValid says what of the rules for profiles is broken (opentelemetry-proto, profiles):
// every index is in its table, the first entry of each table is empty, entries are there
// once, and samples have values and are told apart.
func checkValid(t *testing.T, profiles pprofile.Profiles) {
	t.Helper()
	d := profiles.Dictionary()
	str := func(i int32) {
		require.True(t, i >= 0 && int(i) < d.StringTable().Len(), "text %d", i)
	}
	require.Empty(t, d.StringTable().At(0))
	require.Equal(t, pprofile.NewFunction(), d.FunctionTable().At(0))
	require.Zero(t, d.LocationTable().At(0).Lines().Len()+d.StackTable().At(0).LocationIndices().Len())
	require.Equal(t, [...]int{1, 1}, [...]int{d.MappingTable().Len(), d.LinkTable().Len()})
	unique := map[string]bool{}
	for _, s := range d.StringTable().All() {
		require.True(t, utf8.ValidString(s) && !unique[s], "text %q", s)
		unique[s] = true
	}
	for _, f := range d.FunctionTable().All() {
		str(f.NameStrindex())
		str(f.SystemNameStrindex())
		str(f.FilenameStrindex())
	}
	attribute := func(i int32) { require.True(t, i > 0 && int(i) < d.AttributeTable().Len()) }
	for i, a := range d.AttributeTable().All() {
		str(a.KeyStrindex())
		require.Equal(t, i == 0, a.KeyStrindex() == 0)
	}
	for i, l := range d.LocationTable().All() {
		require.Zero(t, l.MappingIndex())
		if i > 0 {
			f := l.Lines().At(0).FunctionIndex()
			require.True(t, f > 0 && int(f) < d.FunctionTable().Len())
			attribute(l.AttributeIndices().At(0))
		}
	}
	for _, s := range d.StackTable().All() {
		for _, l := range s.LocationIndices().All() {
			require.True(t, l > 0 && int(l) < d.LocationTable().Len())
		}
	}
	for _, p := range profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		checkProfile(t, d, p, attribute)
	}
}

func checkProfile(t *testing.T, d pprofile.ProfilesDictionary, p pprofile.Profile, attribute func(int32)) {
	t.Helper()
	require.NotZero(t, p.SampleType().TypeStrindex())
	require.NotZero(t, p.SampleType().UnitStrindex())
	require.False(t, p.ProfileID().IsEmpty())
	require.Positive(t, p.Samples().Len())
	seen := map[string]bool{}
	for _, s := range p.Samples().All() {
		require.True(t, s.StackIndex() > 0 && int(s.StackIndex()) < d.StackTable().Len())
		require.Zero(t, s.LinkIndex())
		require.Equal(t, [...]int{1, 0}, [...]int{s.Values().Len(), s.TimestampsUnixNano().Len()})
		require.GreaterOrEqual(t, s.Values().At(0), int64(0))
		for _, a := range s.AttributeIndices().All() {
			attribute(a)
		}
		key := fmt.Sprint(s.StackIndex(), s.AttributeIndices().AsRaw())
		require.False(t, seen[key], "twice: %s", key)
		seen[key] = true
	}
}

func TestProfilesAreValid(t *testing.T) {
	for _, name := range []string{"released-30s", "documented-30s", "samples"} {
		got := mapCapture(t, openCapture(t, name))
		require.NotEmpty(t, got.profiles)
		ids := map[pprofile.ProfileID]bool{}
		for _, p := range got.profiles {
			checkValid(t, p)
			for _, one := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
				ids[one.ProfileID()] = true
			}
		}
		assert.Equal(t, len(slices.Collect(maps.Keys(ids))), len(ids))
	}
}

func TestAProfileEndsWhereItHasTooManyStacks(t *testing.T) {
	got := mapCapture(t, openCapture(t, "documented-30s"), func(_ *bed, c *Config) { c.Limits.MaxProfileStacks = 2 })
	samples := int64(0)
	for _, p := range got.profiles {
		checkValid(t, p)
		for _, one := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			assert.LessOrEqual(t, one.Samples().Len(), 2)
			if p.Dictionary().StringTable().At(int(one.SampleType().TypeStrindex())) == typeSamples {
				for _, s := range one.Samples().All() {
					samples += s.Values().At(0)
				}
			}
		}
	}
	assert.EqualValues(t, 6145, samples, "none is lost")
}

func TestStacksThatAreFoundAtOnceAreBounded(t *testing.T) {
	b := unstartedBed(t, func(_ *bed, c *Config) { c.Servers = []ServerConfig{{Publish: "localhost:5555"}} })
	env := b.receiver.env
	env.ctx = context.Background()
	env.profiles = newProfileSink(env, b.profiles)
	s := samples{env: env, origin: newOrigin(env.config, &env.config.Servers[0], nil, nil, recorded, 0)}
	most := 0
	// Few frames, so that the tables stay small, in long stacks.
	const stacks, depth, times = 120, 4000, 3
	for i := range stacks {
		frames, random := make([]rbkit.Frame, depth), rand.New(rand.NewPCG(uint64(i), 0))
		for j := range frames {
			frames[j] = rbkit.Frame{Method: fmt.Appendf(nil, "method%d", random.IntN(7)), File: []byte("a/long/path/of/a.rb")}
		}
		e := read(t, rbkit.Documented, func(c *rbkit.Collection) error { return c.Sample(1, frames) })
		for range times {
			s.add(1, e.Frames, recorded)
		}
		most = max(most, s.toldBytes)
	}
	s.flush()
	assert.LessOrEqual(t, most, maxToldBytes)
	assert.Greater(t, most, maxToldBytes/2)
	env.profiles.Close()
	total := int64(0)
	for _, p := range b.profiles.AllProfiles() {
		checkValid(t, p)
		for _, sample := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
			total += sample.Values().At(0)
		}
	}
	assert.EqualValues(t, stacks*times, total)
}

func TestTheClockOfSamplesIsKnownOrNotSaid(t *testing.T) {
	off := func(clock string) *rbkit.HandshakeReply { return &rbkit.HandshakeReply{Clock: clock} }
	on := func(clock string) *rbkit.HandshakeReply {
		return &rbkit.HandshakeReply{Clock: clock, CPUProfiling: true}
	}
	for name, c := range map[string]struct {
		said []*rbkit.HandshakeReply
		want string
	}{
		"nothing":                          {nil, ""},
		"found on":                         {[]*rbkit.HandshakeReply{on("cpu")}, "cpu"},
		"found off":                        {[]*rbkit.HandshakeReply{off("cpu")}, "cpu"},
		"the same again":                   {[]*rbkit.HandshakeReply{on("cpu"), on("cpu")}, "cpu"},
		"set while it is off":              {[]*rbkit.HandshakeReply{off("wall"), off("cpu")}, "cpu"},
		"set and switched on":              {[]*rbkit.HandshakeReply{off("wall"), on("cpu")}, "cpu"},
		"set while it is on":               {[]*rbkit.HandshakeReply{on("wall"), on("cpu")}, ""},
		"set while it is on, said again":   {[]*rbkit.HandshakeReply{on("wall"), on("cpu"), on("cpu")}, ""},
		"set while it is on, started anew": {[]*rbkit.HandshakeReply{on("wall"), on("cpu"), off("cpu"), on("cpu")}, "cpu"},
	} {
		var s samples
		for _, h := range c.said {
			s.state(h)
		}
		assert.Equal(t, c.want, s.clock, name)
	}
}
