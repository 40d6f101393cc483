// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/records"
)

func TestSpansHaveALengthAndChildrenLieInside(t *testing.T) {
	e := unstartedBed(t, ofOneServer).open()
	defer e.Finish()
	of := originOf(e.config, &e.config.Servers[0], "", origin.Identity{}, recorded, 0)
	const last = math.MaxInt64 / 1_000_000
	var parcels []cycleParcel
	for i, c := range []process.Cycle{{Number: 1, Start: 5, Marked: 5, End: 5}, {Number: 2, Start: 5, Marked: 7, End: 7}, {Number: 3, Start: 5, Marked: 5, End: 9}, {Number: 4, Start: last, Marked: last, End: last}} {
		require.EqualValues(t, i+1, c.Number)
		parcels = append(parcels, cycleParcel{cycle: c, origin: of})
	}
	traces := tracesOf(e.Kit, parcels)
	require.Equal(t, 1, traces.ResourceSpans().Len())
	assert.Equal(t, schema.URL, traces.ResourceSpans().At(0).SchemaUrl())
	assert.Equal(t, schema.URL, traces.ResourceSpans().At(0).ScopeSpans().At(0).SchemaUrl())
	spans := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	ids := map[string]bool{}
	for i := 0; i < spans.Len(); i += spansOfCycle {
		gc, mark, sweep := spans.At(i), spans.At(i+1), spans.At(i+2)
		ids[gc.TraceID().String()] = true
		for _, s := range []uint64{uint64(mark.StartTimestamp()), uint64(gc.StartTimestamp())} {
			assert.Equal(t, uint64(parcels[i/3].cycle.Start)*1e6, s)
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

func TestEachObjectOfADumpHasARecordIfConfigured(t *testing.T) {
	got := mapCapture(t, openCapture(t, "released-30s"), func(_ *bed, c *Config) { c.DumpReferences = true })
	objects, references := 0, 0
	for _, resource := range got.logs.ResourceLogs().All() {
		for _, r := range resource.ScopeLogs().At(0).LogRecords().All() {
			if r.EventName() == records.EventObject {
				objects++
				if v, ok := r.Attributes().Get("rbkit.object.references"); ok {
					references += v.Slice().Len()
					assert.LessOrEqual(t, v.Slice().Len(), 1000)
				}
				if v, ok := r.Attributes().Get("rbkit.object.references.more"); ok {
					references += int(v.Int())
				}
			}
		}
	}
	assert.Equal(t, 16751, objects)
	last := got.logs.ResourceLogs().At(got.logs.ResourceLogs().Len() - 1).ScopeLogs().At(0).LogRecords().At(0)
	assert.Equal(t, eventDump, last.EventName(), "the summary is the last record")
	all, _ := last.Attributes().Get(attributeDumpRefs)
	assert.EqualValues(t, references, all.Int())
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
	assert.EqualValues(t, 2, got.state.Samples)
	assert.EqualValues(t, 1, with.Counter("samples_dropped"))
	values := map[string][]int64{}
	for _, p := range got.profiles {
		profiletest.CheckValid(t, p)
		for _, one := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			kind := p.Dictionary().StringTable().At(int(one.SampleType().TypeStrindex()))
			for _, s := range one.Samples().All() {
				values[kind] = append(values[kind], s.Values().At(0))
			}
		}
	}
	assert.Equal(t, map[string][]int64{"samples": {1}, "alloc_objects": {1, 4}, "alloc_space": {40, 160}}, values, "allocations of a deep stack count without it")
}

func TestAProfileEndsWhereItHasTooManyStacks(t *testing.T) {
	got := mapCapture(t, openCapture(t, "documented-30s"), func(_ *bed, c *Config) { c.Limits.MaxProfileStacks = 2 })
	samples := int64(0)
	for _, p := range got.profiles {
		profiletest.CheckValid(t, p)
		for _, one := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			assert.LessOrEqual(t, one.Samples().Len(), 2)
			if p.Dictionary().StringTable().At(int(one.SampleType().TypeStrindex())) == "samples" {
				for _, s := range one.Samples().All() {
					samples += s.Values().At(0)
				}
			}
		}
	}
	assert.EqualValues(t, 6145, samples, "none is lost")
}

// Times are set when something is packed, and may step back.
func TestProfilesHaveTheTimesOfTheirSamples(t *testing.T) {
	sample := func(at rbkit.Time) *rbkit.Collection {
		c := rbkit.NewCollection(rbkit.Documented)
		require.NoError(t, c.Sample(at, []rbkit.Frame{{Method: []byte("m")}}))
		return c
	}
	snapshot := func(at rbkit.Time) *rbkit.Collection {
		c := rbkit.NewCollection(rbkit.Documented)
		require.NoError(t, c.Snapshot(at, nil, []rbkit.FileAllocations{{File: []byte("f"), Allocations: []rbkit.PlaceAllocations{{Size: 40, Count: 1}}}}))
		return c
	}
	type span struct{ from, length uint64 } // in milliseconds
	for name, c := range map[string]struct {
		messages []*rbkit.Collection
		want     []span
	}{
		"samples":                       {[]*rbkit.Collection{sample(5), sample(9)}, []span{{5, 4}}},
		"samples before the first":      {[]*rbkit.Collection{sample(5), sample(2), sample(9)}, []span{{2, 7}}},
		"snapshots":                     {[]*rbkit.Collection{snapshot(5), snapshot(9)}, []span{{5, 0}, {5, 4}}},
		"a snapshot before the last":    {[]*rbkit.Collection{snapshot(5), snapshot(2), snapshot(9)}, []span{{5, 0}, {2, 0}, {2, 7}}},
		"a snapshot in the same moment": {[]*rbkit.Collection{snapshot(5), snapshot(5)}, []span{{5, 0}, {5, 0}}},
	} {
		var all capture.Capture
		for i, m := range c.messages {
			all.Messages = append(all.Messages, capture.Message{Data: m.AppendTo(nil, 1, uint64(i))})
		}
		var got []span
		for _, p := range mapCapture(t, &all).profiles {
			one := p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
			got = append(got, span{uint64(one.Time()) / 1e6, one.DurationNano() / 1e6})
		}
		assert.Equal(t, c.want, got, name)
	}
}

func TestADumpMaySpanSeveralMessages(t *testing.T) {
	part := func(number uint64, objects ...rbkit.DumpObject) capture.Message {
		c := rbkit.NewCollection(rbkit.Released)
		require.NoError(t, c.Created(1, 100+number, []byte("B"))) // something stands between the parts
		require.NoError(t, c.Dump(1, 7, 3, objects))
		return capture.Message{Data: c.AppendTo(nil, 1, number)}
	}
	got := mapCapture(t, &capture.Capture{Messages: []capture.Message{
		part(0, rbkit.DumpObject{ID: 1, Class: []byte("A"), References: []uint64{2, 9}, Size: 40}),
		part(1), part(2, rbkit.DumpObject{ID: 2, Size: 40}, rbkit.DumpObject{ID: 3, Class: []byte("A"), Size: 80}),
	}})
	assert.EqualValues(t, 1, got.state.Live.Objects[names.Hidden])
	assert.Equal(t, 2, got.state.Tracked, "that were created after its begin, and are not in it")
	record := got.logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	assert.Equal(t, "Object space dump: 3 objects, 160 bytes", record.Body().Str())
	nowhere, _ := record.Attributes().Get(attributeDumpNowhere)
	assert.EqualValues(t, 1, nowhere.Int())
}

func TestProfilesAreValid(t *testing.T) {
	for _, name := range []string{"released-30s", "documented-30s", "samples"} {
		got := mapCapture(t, openCapture(t, name))
		profiles, ids := 0, map[pprofile.ProfileID]bool{}
		for _, p := range got.profiles {
			profiletest.CheckValid(t, p)
			for _, one := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
				profiles++
				ids[one.ProfileID()] = true
			}
		}
		assert.Greater(t, profiles, 1, name)
		assert.Len(t, ids, profiles, "each has an ID of its own")
	}
}
