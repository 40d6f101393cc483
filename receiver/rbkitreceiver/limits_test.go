// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// Each limit that a server reaches is counted, and logged once.
func TestAReachedLimitIsCountedAndLoggedOnce(t *testing.T) {
	frames := func(n int) (frames []rbkit.Frame) {
		for i := range n {
			frames = append(frames, rbkit.Frame{Method: fmt.Appendf(nil, "m%d", i), File: []byte("a.rb"), Line: 1})
		}
		return frames
	}
	create := func(classes ...string) func(*rbkit.Collection) error {
		return func(c *rbkit.Collection) error {
			for i, class := range classes {
				if err := c.Created(1, uint64(i), []byte(class)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	allocate := func(stacks []rbkit.Stack, files ...string) func(*rbkit.Collection) error {
		return func(c *rbkit.Collection) error {
			var all []rbkit.FileAllocations
			for _, file := range files {
				all = append(all, rbkit.FileAllocations{File: []byte(file), Allocations: []rbkit.PlaceAllocations{{Line: 1, Class: []byte("A"), Size: 40, Count: 3}}})
			}
			return c.Snapshot(1, stacks, all)
		}
	}
	for setting, c := range map[string]struct {
		dialect rbkit.Dialect
		set     func(*LimitsConfig)
		write   func(*rbkit.Collection) error
		want    map[string]int64
	}{
		"max_classes":       {rbkit.Released, func(l *LimitsConfig) { l.MaxClasses = 1 }, create("A", "B", "C"), map[string]int64{"folded": 2}},
		"max_metric_points": {rbkit.Released, func(l *LimitsConfig) { l.MaxMetricPoints = 10 }, create("A", "B", "C"), map[string]int64{"folded": 2}},
		"max_files":         {rbkit.Documented, func(l *LimitsConfig) { l.MaxFiles = 1 }, allocate(nil, "a", "b", "c"), map[string]int64{"folded": 2}},
		"max_sites":         {rbkit.Documented, func(l *LimitsConfig) { l.MaxSites = 1 }, allocate(nil, "a", "b", "c"), map[string]int64{"folded": 2}},
		"max_tracked_objects": {rbkit.Released, func(l *LimitsConfig) { l.MaxTrackedObjects = 2 }, create("A", "A", "A"),
			map[string]int64{"objects_forgotten": 1}},
		"max_dump_objects": {rbkit.Released, func(l *LimitsConfig) { l.MaxDumpObjects = 1 },
			func(c *rbkit.Collection) error { return c.Dump(1, 1, 2, []rbkit.DumpObject{{ID: 1}, {ID: 2}}) },
			map[string]int64{"dumps{objects=complete}": 1, "dumps_unchecked": 1}},
		"max_frames": {rbkit.Released, func(l *LimitsConfig) { l.MaxFrames = 2 },
			func(c *rbkit.Collection) error { return c.Sample(1, frames(3)) }, map[string]int64{"samples_dropped{reason=limit}": 1}},
		"max_frames, of a snapshot": {rbkit.Documented, func(l *LimitsConfig) { l.MaxFrames = 2 },
			allocate([]rbkit.Stack{{ID: 1, Frames: frames(3)}, {ID: 2, Frames: frames(2)}}, "a"), map[string]int64{"stacks_dropped": 1}},
		"max_profile_stacks": {rbkit.Documented, func(l *LimitsConfig) { l.MaxProfileStacks = 1 },
			allocate([]rbkit.Stack{{ID: 1, Frames: frames(1)}, {ID: 2, Frames: frames(2)}}, "a"), map[string]int64{"stacks_dropped": 1}},
		"max_profile_stacks, by samples": {rbkit.Documented, func(l *LimitsConfig) { l.MaxProfileStacks = 1 },
			allocate(nil, "a", "b"), map[string]int64{"samples_dropped{reason=limit}": 2}},
	} {
		t.Run(setting, func(t *testing.T) {
			b, s := alone(t, func(_ *bed, config *Config) { c.set(&config.Limits) })
			s.Begin(origin.Identity{})
			message := numbered(t, c.dialect, 0, c.write)
			s.Receive(zmtp.Message{message})
			counted := b.Points()
			for _, name := range []string{"folded", "objects_forgotten", "dumps{objects=complete}", "dumps_unchecked", "samples_dropped{reason=limit}", "stacks_dropped"} {
				assert.Equal(t, c.want[name], counted[name], name)
			}
			s.Receive(zmtp.Message{numbered(t, c.dialect, 1, c.write)})
			b.finish(s)
			lines := b.Log.FilterMessage("The server has reached a limit").All()
			if assert.Len(t, lines, 1) {
				name, _, _ := strings.Cut(setting, ",")
				assert.Equal(t, "limits."+name, lines[0].ContextMap()["setting"])
			}
		})
	}
}
