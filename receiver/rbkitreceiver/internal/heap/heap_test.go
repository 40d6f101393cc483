// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/rbkittest"
	"github.com/callbraid/callbraid/internal/testkit/heapsize"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
)

// recorded is the time at which parts of dumps arrive.
var recorded = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

func TestObjectsThatAreTooManyAreForgottenOldestFirst(t *testing.T) {
	o := NewObjects(names.New(10), 4)
	for id := range uint64(7) {
		o.Create(id, []byte("A"))
	}
	assert.LessOrEqual(t, o.tracked.len(), 4)
	assert.EqualValues(t, 4, o.tracked.forgotten)
	for id := range uint64(7) {
		o.Destroy(id)
	}
	o.Destroy(6) // twice
	assert.EqualValues(t, 7, o.Created[names.First])
	assert.EqualValues(t, 3, o.Destroyed[names.First], "the last ones")
	assert.EqualValues(t, 5, o.Destroyed[names.Unknown])
	assert.Zero(t, o.tracked.len())
}

// dumper makes objects of dumps, with references.
func dumper(t testing.TB) func(id uint64, to ...uint64) *rbkit.Object {
	return func(id uint64, to ...uint64) *rbkit.Object {
		e := rbkittest.LastEvent(t, rbkit.Released, func(c *rbkit.Collection) error {
			return c.Dump(1, 1, 1, []rbkit.DumpObject{{ID: id, Class: []byte("A"), References: to, Size: 10}})
		})
		return &e.Object
	}
}

func TestDumpsArePutTogether(t *testing.T) {
	dumped := dumper(t)
	now := recorded
	begin := func(d *Dumps, p rbkit.Part, objects []*rbkit.Object) {
		d.BeginPart(1, p, now)
		for _, o := range objects {
			d.CountObject(o)
		}
	}
	part := func(d *Dumps, correlation, all uint64, objects ...*rbkit.Object) {
		begin(d, rbkit.Part{Correlation: correlation, Objects: all, Counted: true, Here: len(objects)}, objects)
	}
	uncounted := func(d *Dumps, correlation uint64, objects ...*rbkit.Object) {
		begin(d, rbkit.Part{Correlation: correlation, Here: len(objects)}, objects)
	}
	cut := func(d *Dumps, all uint64, here int, objects ...*rbkit.Object) {
		begin(d, rbkit.Part{Correlation: 1, Objects: all, Counted: true, Here: here}, objects)
	}
	cases := map[string]struct {
		do                                    func(d *Dumps)
		complete, incomplete, uncounted, live int64
		nowhere, dangling                     int64
	}{
		"in two parts":               {do: func(d *Dumps) { part(d, 1, 3, dumped(1, 2), dumped(2, 1)); part(d, 1, 3, dumped(3, 9, 9, 1, 3)) }, complete: 1, live: 3, nowhere: 2, dangling: 1},
		"without objects":            {do: func(d *Dumps) { part(d, 1, 0) }, complete: 1},
		"without its last part":      {do: func(d *Dumps) { part(d, 1, 3, dumped(1, 5)); d.FinishDue(now.Add(dumpPatience)) }, incomplete: 1, nowhere: 1, dangling: 1},
		"that another one follows":   {do: func(d *Dumps) { part(d, 1, 3, dumped(1, 5)); part(d, 2, 1, dumped(1, 1)) }, complete: 1, incomplete: 1, live: 1},
		"that is not over":           {do: func(d *Dumps) { part(d, 1, 3, dumped(1)); d.FinishDue(now.Add(dumpPatience - 1)) }},
		"with more than announced":   {do: func(d *Dumps) { part(d, 1, 1, dumped(1), dumped(2)) }, incomplete: 1},
		"of which a part has more":   {do: func(d *Dumps) { part(d, 1, 3, dumped(1), dumped(2)); part(d, 1, 3, dumped(3), dumped(4)) }, incomplete: 1},
		"of which a part breaks off": {do: func(d *Dumps) { cut(d, 3, 5, dumped(1), dumped(2), dumped(3)); d.FinishDue(now.Add(dumpPatience)) }, incomplete: 1},
		"without a count of objects": {do: func(d *Dumps) {
			part(d, 1, 1, dumped(1))
			uncounted(d, 2, dumped(2), dumped(3))
			uncounted(d, 2, dumped(4))
			d.FinishDue(now.Add(dumpPatience))
		}, complete: 1, uncounted: 1, live: 1},
		"without objects, and no count": {do: func(d *Dumps) { part(d, 1, 1, dumped(1)); uncounted(d, 2); d.Finish() }, complete: 1, uncounted: 1, live: 1},
		"that ends with the server":     {do: func(d *Dumps) { part(d, 1, 3, dumped(1)); d.Finish() }, incomplete: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var last *Dump
			objects := NewObjects(names.New(10), 10)
			d := &Dumps{classes: objects.classes, tracked: &objects.tracked, maxObjects: 10, Finished: func(d *Dump) { last = d }}
			c.do(d)
			assert.Equal(t, [...]int64{c.complete, c.incomplete, c.uncounted}, [...]int64{d.Complete, d.Incomplete, d.Uncounted})
			live := int64(0)
			for _, n := range d.Live.Objects {
				live += n
			}
			assert.Equal(t, c.live, live)
			if last != nil {
				nowhere, dangling, known := last.References.Nowhere()
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

func TestADumpShowsTheObjectsThatStillExist(t *testing.T) {
	dumped := dumper(t)
	for name, c := range map[string]struct {
		announced uint64
		want      []uint64
	}{
		"complete":   {3, []uint64{2, 3, 5, 6}},
		"incomplete": {4, []uint64{1, 2, 3, 4, 5, 6}},
	} {
		o := NewObjects(names.New(10), 8) // so that there are two generations
		d := &Dumps{classes: o.classes, tracked: &o.tracked}
		for id := range uint64(5) {
			o.Create(1+id, []byte("A"))
		}
		o.Destroy(5)
		o.Create(5, nil) // hidden, which dumps may leave out
		d.BeginPart(1, rbkit.Part{Correlation: 1, Objects: c.announced, Counted: true, Here: 1}, recorded)
		d.CountObject(dumped(2))
		o.Create(6, []byte("A")) // after the dump was made
		d.BeginPart(1, rbkit.Part{Correlation: 1, Objects: c.announced, Counted: true, Here: 2}, recorded)
		d.CountObject(dumped(3))
		d.CountObject(dumped(7)) // created before the server reported objects
		d.Finish()
		assert.Equal(t, c.want, trackedIDs(&o.tracked), name)
		// A complete dump also removes objects that an incomplete dump left out.
		d.BeginPart(1, rbkit.Part{Correlation: 2, Objects: 1, Counted: true, Here: 1}, recorded)
		d.CountObject(dumped(6))
		assert.Equal(t, []uint64{5, 6}, trackedIDs(&o.tracked), name)
		o.Destroy(6)
		o.Destroy(3)
		assert.EqualValues(t, 2, o.Destroyed[names.First], "5 and 6")
		assert.EqualValues(t, 1, o.Destroyed[names.Unknown], "3")
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
		_, _, known := r.Nowhere()
		assert.False(t, known, name)
		r.object(dumped(4, 1))
		assert.Positive(t, r.Total)
	}
}

func TestAllocationsAreBoundedAndDontOverflow(t *testing.T) {
	a := NewAllocations(names.New(10), 10, 2)
	for i := range 4 {
		a.Count(&rbkit.Allocation{File: fmt.Appendf(nil, "%d.rb", i), Class: []byte("A"), Count: 2, Size: 40})
	}
	assert.Equal(t, Allocated{4, 160}, a.Sites[Site{names.Other, names.Other}])
	assert.EqualValues(t, 2, a.Folded)
	assert.Len(t, a.Sites, 3)
	for range 2 {
		a.Count(&rbkit.Allocation{File: []byte("0.rb"), Class: []byte("A"), Count: math.MaxUint64, Size: math.MaxUint64})
	}
	assert.Equal(t, Allocated{math.MaxInt64, math.MaxInt64}, a.Sites[Site{names.First, names.First}])
}

func TestAnObjectIsTrackedOnce(t *testing.T) {
	o := NewObjects(names.New(10), 4)
	for id := range uint64(3) {
		o.Create(id, []byte("A"))
	}
	require.Len(t, o.tracked.old, 2)
	o.Create(0, []byte("B")) // the event of its destruction was lost
	assert.Equal(t, 3, o.tracked.len())
	o.Create(0, []byte("B"))
	assert.Equal(t, 3, o.tracked.len())
	assert.Zero(t, o.tracked.forgotten, "no other object was created")
	o.Destroy(0)
	o.Destroy(0)
	assert.Equal(t, Counts{names.Unknown: 1, names.First: 0, names.First + 1: 1}, o.Destroyed, "first with its last class, then as unknown")
}

func TestADumpOfVeryFewObjectsSettlesNothing(t *testing.T) {
	for name, c := range map[string]struct{ objects, left uint64 }{
		"few":      {trackedForEachDumped, 0},
		"very few": {trackedForEachDumped + 1, trackedForEachDumped + 1},
	} {
		tracked := newTracked(1000)
		for id := range c.objects {
			tracked.track(id+1, names.First)
		}
		tracked.dumpBegins()
		tracked.dumpEnds(1)
		assert.EqualValues(t, c.left, tracked.len(), name)
	}
}

func TestCountedMemoryIsTheMemoryOfTheHeap(t *testing.T) {
	const n = 900_000
	objects := NewObjects(names.New(10), 1_000_000)
	heapsize.AssertCounted(t, objects.Memory, func() {
		for i := range uint64(n) {
			objects.Create(i, []byte("A"))
		}
	}, 0.35)
	dumps := NewDumps(objects, 1_000_000)
	dumps.Finished = func(*Dump) {}
	heapsize.AssertCounted(t, dumps.Memory, func() {
		dumps.BeginPart(1, rbkit.Part{Correlation: 1, Objects: 1 << 40, Counted: true, Here: 1 << 30}, time.Now())
		for i := range uint64(n) {
			dumps.open.References.seen.insert(i + 1)
			dumps.open.References.waiting = append(dumps.open.References.waiting, reference{to: i})
		}
	}, 0.35)
	runtime.KeepAlive(objects)
	runtime.KeepAlive(dumps)
}
