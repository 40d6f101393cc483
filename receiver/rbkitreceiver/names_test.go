// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// Folded classes don't mix with a class of the name other.
func TestAClassCalledOtherHasItsOwnNumbers(t *testing.T) {
	b, s := alone(t, func(_ *bed, c *Config) { c.Limits.MaxClasses = 1 })
	s.Begin(origin.Identity{})
	objects := []rbkit.DumpObject{{ID: 1, Class: []byte("other"), Size: 100}, {ID: 2, Class: []byte("B"), Size: 1}, {ID: 3, Class: []byte("C"), Size: 1}}
	s.Receive(zmtp.Message{numbered(t, rbkit.Released, 0, func(c *rbkit.Collection) error { return c.Dump(5, 7, 3, objects) })})
	metrics := b.receiver.out.metrics.metrics([]process.State{stateOf(s)}, recorded)
	b.finish(s)
	assert.Equal(t, map[string]int64{`"other"`: 100, "other": 2}, pointsOf(metrics, "ruby.heap.live_size", "ruby.class"))
}

func TestObjectsAreFollowedForMetricsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		option  option
		tracked int
	}{
		"metrics":    {option: func(*bed, *Config) {}, tracked: 1},
		"no metrics": {option: func(b *bed, _ *Config) { b.Next.Metrics = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := alone(t, c.option)
			defer b.finish(s)
			s.Begin(origin.Identity{})
			s.Receive(zmtp.Message{numbered(t, rbkit.Released, 0,
				func(c *rbkit.Collection) error { return c.Created(1, 20, []byte("A")) },
				func(c *rbkit.Collection) error { return c.Created(1, 40, []byte("B")) },
				func(c *rbkit.Collection) error { return c.Destroyed(1, 20) })})
			state := stateOf(s)
			assert.Equal(t, c.tracked, state.Tracked)
			assert.Len(t, state.Classes, int(names.First)+2*c.tracked)
			assert.EqualValues(t, 3, state.Events)
			s.Receive(zmtp.Message{numbered(t, rbkit.Documented, 0, func(c *rbkit.Collection) error {
				return c.Snapshot(1, nil, []rbkit.FileAllocations{{Allocations: []rbkit.PlaceAllocations{{Count: 1}}}})
			})})
			assert.Len(t, stateOf(s).Sites, c.tracked)
		})
	}
}

func TestAttributesOfProfilesHaveTheTypeOfTheirKey(t *testing.T) {
	b, s := alone(t)
	s.Begin(origin.Identity{})
	s.Receive(zmtp.Message{numbered(t, rbkit.Documented, 0, func(c *rbkit.Collection) error {
		return c.Snapshot(1, nil, []rbkit.FileAllocations{{File: []byte("a.rb"), Allocations: []rbkit.PlaceAllocations{
			{Line: 1, Class: []byte{}, Size: 40, Count: 1}, {Line: 1, Class: []byte("other"), Size: 40, Count: 1}, {Line: 1, Size: 40, Count: 1},
		}}})
	})})
	b.finish(s)
	require.Len(t, b.Profiles.AllProfiles(), 1)
	d := b.Profiles.AllProfiles()[0].Dictionary()
	var classes []string
	for _, a := range d.AttributeTable().All() {
		if d.StringTable().At(int(a.KeyStrindex())) == "ruby.class" {
			assert.Equal(t, pcommon.ValueTypeStr, a.Value().Type())
			classes = append(classes, a.Value().Str())
		}
	}
	assert.Equal(t, []string{"", `"other"`, "hidden"}, classes)
}

// A method of a single object is called by the object, and there is no end of them.
func TestFunctionsAreWithoutAddresses(t *testing.T) {
	b, s := alone(t)
	s.Begin(origin.Identity{})
	sample := func(label string) func(*rbkit.Collection) error {
		return func(c *rbkit.Collection) error {
			return c.Sample(1, []rbkit.Frame{{Label: []byte(label), Method: []byte("zab"), File: []byte("a.rb"), Line: 3, Thread: 8}})
		}
	}
	s.Receive(zmtp.Message{numbered(t, rbkit.Released, 0, sample("#<Object:0x00007f01998f62d0>.zab"), sample("#<Object:0x00007f01998f6000>.zab"))})
	b.finish(s)
	assert.Equal(t, "== samples in count, period of \"\"; from 1000000 for 0 ns; 1 samples, total 2\n#<Object>.zab@a.rb:3 {thread.id=8} 2\n",
		profiletest.Fold(b.Profiles.AllProfiles()))
}
