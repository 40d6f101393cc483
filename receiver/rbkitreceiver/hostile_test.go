// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/heap"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// The largest numbers that can be sent, and the last millisecond that has nanoseconds.
const (
	largest  = uint64(math.MaxUint64)
	lastTime = rbkit.Time(math.MaxInt64 / int64(time.Millisecond))
)

// hostile are messages that are written well, of things that can't be.
var hostile = []struct {
	name    string
	dialect rbkit.Dialect
	write   func(*rbkit.Collection) error
	check   func(*testing.T, process.State)
}{
	{
		"objects of the largest IDs, over and over", rbkit.Released,
		func(c *rbkit.Collection) error {
			for i := range uint64(1000) {
				if err := c.Created(lastTime, largest-i%3, []byte("A")); err != nil {
					return err
				}
			}
			return c.Destroyed(0, largest)
		},
		func(t *testing.T, s process.State) { assert.Equal(t, 2, s.Tracked) },
	},
	{
		"as many classes as objects, all of them long", rbkit.Released,
		func(c *rbkit.Collection) error {
			for i := range uint64(500) {
				if err := c.Created(1, i, []byte(fmt.Sprint(i, strings.Repeat("\xff", 3000)))); err != nil {
					return err
				}
			}
			return nil
		},
		func(t *testing.T, s process.State) {
			assert.Len(t, s.Classes, 3+int(names.First))
			for _, class := range s.Classes {
				assert.LessOrEqual(t, len(class), 3*names.MaxTextBytes)
			}
		},
	},
	{
		"a dump of more objects than there can be", rbkit.Released,
		func(c *rbkit.Collection) error {
			return c.Dump(lastTime, largest, largest, []rbkit.DumpObject{{ID: largest, References: []uint64{largest, 0}, File: []byte("f"), Line: largest, Size: largest}})
		},
		func(t *testing.T, s process.State) { assert.Empty(t, s.Live.Objects) },
	},
	{
		"dumps that each begin another", rbkit.Released,
		func(c *rbkit.Collection) error {
			for i := range uint64(5000) {
				if err := c.Dump(1, i, 2, []rbkit.DumpObject{{ID: 1}}); err != nil {
					return err
				}
			}
			return nil
		},
		func(*testing.T, process.State) {},
	},
	{
		"garbage collections at the end of time, and back", rbkit.Released,
		func(c *rbkit.Collection) error {
			for _, at := range []rbkit.Time{0, lastTime, 0} {
				for _, k := range []rbkit.Kind{rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep} {
					if err := c.GC(k, at); err != nil {
						return err
					}
				}
			}
			if err := c.GC(rbkit.GCStart, 0); err != nil {
				return err
			}
			if err := c.GC(rbkit.GCEndMark, lastTime); err != nil {
				return err
			}
			return c.GC(rbkit.GCEndSweep, lastTime)
		},
		func(t *testing.T, s process.State) {
			assert.EqualValues(t, 4, s.Whole.Count)
			assert.GreaterOrEqual(t, s.Whole.Sum, time.Duration(0))
		},
	},
	{
		"more statistics than there are", rbkit.Released,
		func(c *rbkit.Collection) error {
			stats := []rbkit.Stat{{Name: "count", Value: largest}, {Name: "", Value: 1}, {Name: strings.Repeat("x", 100_000), Value: 1}}
			for i := range 10_000 {
				stats = append(stats, rbkit.Stat{Name: fmt.Sprint("key", i), Value: 1})
			}
			return c.Stats(1, stats)
		},
		func(t *testing.T, s process.State) { assert.Len(t, s.Stats, 256) },
	},
	{
		"a stack of each thread that can be", rbkit.Released,
		func(c *rbkit.Collection) error {
			for i := range uint64(1000) {
				if err := c.Sample(rbkit.Time(i%2)*lastTime, []rbkit.Frame{{Method: []byte("m"), Line: largest, Thread: largest - i}}); err != nil {
					return err
				}
			}
			return c.Sample(1, nil)
		},
		func(t *testing.T, s process.State) { assert.EqualValues(t, 1001, s.Samples) },
	},
	{
		"a stack that is deeper than any", rbkit.Documented,
		func(c *rbkit.Collection) error { return c.Sample(1, make([]rbkit.Frame, 100_000)) },
		func(t *testing.T, s process.State) { assert.EqualValues(t, 1, s.Samples) },
	},
	{
		"allocations beyond all bounds", rbkit.Documented,
		func(c *rbkit.Collection) error {
			stack := rbkit.Stack{ID: largest, Frames: []rbkit.Frame{{Method: []byte("m"), File: []byte("0"), Line: largest}}}
			var files []rbkit.FileAllocations
			for i := range 50 {
				files = append(files, rbkit.FileAllocations{File: []byte(fmt.Sprint(i)), Allocations: []rbkit.PlaceAllocations{
					{Line: largest, Class: []byte("A B  C"), Size: largest, Count: largest, Stacks: []rbkit.StackCount{{ID: largest, Count: largest}, {ID: largest, Count: largest}, {ID: 1, Count: 1}}},
					{Size: largest, Count: largest},
				}})
			}
			if err := c.Snapshot(lastTime, []rbkit.Stack{stack, stack}, files); err != nil {
				return err
			}
			return c.Snapshot(0, nil, files) // and before that
		},
		func(t *testing.T, s process.State) {
			assert.LessOrEqual(t, len(s.Sites), 4+1)
			for _, n := range s.Sites {
				assert.Positive(t, n.Objects)
				assert.Positive(t, n.Bytes)
			}
		},
	},
}

// little is an option: limits that are soon reached.
func little(_ *bed, c *Config) {
	c.DumpReferences = true
	c.Limits.MaxTrackedObjects, c.Limits.MaxClasses, c.Limits.MaxFiles, c.Limits.MaxSites = 10, 3, 3, 4
	c.Limits.MaxDumpObjects, c.Limits.MaxProfileStacks, c.Limits.MaxFrames = 5, 7, 100
	c.Limits.MaxQueuedLogs = 1000
}

func TestImpossibleValuesStayWithinTheirBounds(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			server := play(t, rbkitserver.Options{Hello: rbkit.HandshakeReply{Dialect: h.dialect, PID: largest, ProcessName: strings.Repeat("\xff", 10_000)}})
			b := newBed(t, following(server), little)
			server.awaitSubscriber()
			server.publishNumbered(3, h.write)
			server.publishNumbered(largest, func(c *rbkit.Collection) error { return c.GC(rbkit.GCStart, 1) })
			b.Await("both messages", func() bool { return b.Counter("messages") == 2 })
			b.Shutdown()
			s := b.state()
			h.check(t, s)
			assert.Equal(t, int64(1<<32), s.Lost, "as far as can be")
			assert.Zero(t, b.Counter("bad_messages"))
			b.checkAll()
		})
	}
}

// checkAll fails if delivered spans or profiles break a rule.
func (b *bed) checkAll() {
	b.T.Helper()
	for _, traces := range b.Traces.AllTraces() {
		for _, s := range traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			require.Less(b.T, s.StartTimestamp(), s.EndTimestamp())
			require.LessOrEqual(b.T, uint64(s.EndTimestamp()), uint64(math.MaxInt64)+1)
		}
	}
	for _, p := range b.Profiles.AllProfiles() {
		profiletest.CheckValid(b.T, p)
	}
}

func TestNumbersOfMessagesThatCannotBe(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server))
	server.awaitSubscriber()
	one := func(c *rbkit.Collection) error { return c.Created(1, 20, []byte("A")) }
	// No number is larger than the largest.
	for _, number := range []uint64{largest, largest, 7, 8} {
		server.publishNumbered(number, one)
	}
	b.Await("messages", func() bool { return b.Counter("messages") == 4 })
	b.Shutdown()
	assert.EqualValues(t, 2, b.Counter("restarts"), "the same number again, and a smaller one")
	assert.Zero(t, b.Counter("messages_lost"))
	assert.EqualValues(t, 2, b.state().Messages)
}

// A process has one dialect, whichever it is.
func TestAnotherDialectIsAnotherLife(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	address := server.config()
	address.Request = ""
	b := newBed(t, func(_ *bed, c *Config) { c.Servers = []ServerConfig{address} })
	server.awaitSubscriber()
	for number, dialect := range []rbkit.Dialect{rbkit.Released, rbkit.Documented, rbkit.Released, rbkit.Documented} {
		message := rbkit.NewCollection(dialect).AppendTo(nil, 1, uint64(number))
		if number == 1 {
			message[len(message)-1] = 0xc0 // it can't be opened
		}
		server.Publish(message)
	}
	b.Await("messages", func() bool { return b.Counter("messages") == 4 })
	b.Shutdown()
	assert.EqualValues(t, 1, b.Counter("bad_messages"))
	assert.EqualValues(t, 1, b.Counter("restarts"))
	assert.EqualValues(t, 1, b.state().Messages, "the last")
}

func TestReadingEndsWithTheTimeOfTheShutdown(t *testing.T) {
	// A process checks so many elements of a message until it looks at the time.
	const callsPerCheck = 1024
	one := rbkit.PlaceAllocations{Line: 1, Class: []byte("A"), Size: 4, Count: 1}
	for name, write := range map[string]func(c *rbkit.Collection) error{
		"many allocations": func(c *rbkit.Collection) error {
			return c.Snapshot(1, nil, []rbkit.FileAllocations{{File: []byte("f"), Allocations: slices.Repeat([]rbkit.PlaceAllocations{one}, 3*callsPerCheck)}})
		},
		"many events": func(c *rbkit.Collection) error {
			for range 3 * callsPerCheck {
				if err := c.Snapshot(1, nil, []rbkit.FileAllocations{{File: []byte("f"), Allocations: []rbkit.PlaceAllocations{one}}}); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := alone(t)
			s.Begin(origin.Identity{})
			b.receiver.out.Expire()
			s.Receive(zmtp.Message{numbered(t, rbkit.Documented, 0, write)})
			assert.LessOrEqual(t, stateOf(s).Sites[heap.Site{Class: names.First, File: names.First}].Objects, int64(callsPerCheck))
			assert.Equal(t, 1, b.Log.FilterMessageSnippet("the rest of a message is dropped").Len())
			assert.Zero(t, b.Counter("bad_messages"))
			b.finish(s)
		})
	}
}
