// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// mostWorkPerByte is how much work of a dictionary a byte of a message may cost, and
// mostWork what a message costs beside that.
const (
	mostWorkPerByte = 40
	mostWork        = 1000
)

// work is how much the dictionaries of profiles have to do for a message.
func work(t testing.TB, message []byte, options ...option) (done int, wrong error) {
	b, s := alone(t, options...)
	defer b.receiver.env.Finish()
	s.beginLife(origin.Identity{})
	var r rbkit.Reader
	dialect, err := rbkit.DialectOf(message)
	if err == nil {
		err = r.Open(dialect, message)
	}
	if err != nil {
		return 0, err
	}
	p := s.process
	_, err = p.readEvents(&r)
	if p.snapshots.open != nil {
		done += p.snapshots.open.dictionary.work
	}
	if p.samples.dictionary != nil {
		done += p.samples.dictionary.work
	}
	return done, err
}

// terse writes snapshots of allocations with as few bytes as can be. Frames have nothing.
type terse struct{ events [][]byte }

// snapshot adds one. stacks are how many frames each has; their IDs are 0, 1, 2 and so on.
func (w *terse) snapshot(stacks []int, files ...terseFile) {
	b := msgp.AppendMapHeader([]byte{0x83, 0x00, 0x00, 0x01, 0x01, 0x02}, 2)
	b = msgp.AppendMapHeader(append(b, 16), uint32(len(stacks)))
	for id, frames := range stacks {
		b = msgp.AppendArrayHeader(msgp.AppendInt(b, id), uint32(frames))
		for range frames {
			b = append(b, 0x80)
		}
	}
	b = msgp.AppendMapHeader(append(b, 18), uint32(len(files)))
	for _, f := range files {
		b = msgp.AppendMapHeader(msgp.AppendString(b, f.name), uint32(len(f.places)))
		for _, p := range f.places {
			b = msgp.AppendMapHeader(msgp.AppendString(b, p.place), 2)
			b = msgp.AppendInt(append(b, 17), 1<<30)
			b = msgp.AppendMapHeader(append(b, 16), uint32(len(p.stacks)))
			for _, id := range p.stacks {
				b = append(msgp.AppendInt(b, id), 1)
			}
		}
	}
	w.events = append(w.events, b)
}

type terseFile struct {
	name   string
	places []tersePlace
}

type tersePlace struct {
	place  string
	stacks []int
}

// message is all of them in one message.
func (w *terse) message() []byte {
	b := msgp.AppendArrayHeader([]byte{0x83, 0x00, 0x06, 0x01, 0x01, 0x02}, uint32(len(w.events)))
	for _, e := range w.events {
		b = append(b, e...)
	}
	return b
}

// places are n lines with stacks.
func places(n int, stacks ...int) (all []tersePlace) {
	for i := range n {
		all = append(all, tersePlace{fmt.Sprintf("%d A 4", i), stacks})
	}
	return all
}

// wordy are messages that say much with few bytes.
func wordy() map[string][]byte {
	one := func(stacks []int, files ...terseFile) []byte {
		var w terse
		w.snapshot(stacks, files...)
		return w.message()
	}
	var many, deep terse
	for range 1000 {
		many.snapshot(nil)
	}
	deep.snapshot([]int{4096}, terseFile{"", places(1, 0)})
	for range 100 {
		deep.snapshot([]int{100}, terseFile{"", places(100, 0)})
	}
	var classes []tersePlace
	for i := range 2000 {
		classes = append(classes, tersePlace{fmt.Sprintf("1 %x 4", i), []int{0}})
	}
	return map[string][]byte{
		"a line that has one deep stack again and again": one([]int{4096}, terseFile{"f", places(1, make([]int, 20_000)...)}),
		"a deep stack that has very many lines":          one([]int{4096}, terseFile{"f", places(2000, 0)}),
		"a deep stack in its own file":                   one([]int{4096}, terseFile{"", places(2000, 0)}),
		"a deep stack that allocates very many classes":  one([]int{4096}, terseFile{"f", classes}),
		"a file with a long name and very many lines":    one(nil, terseFile{strings.Repeat("f", 20_000), places(5000)}),
		"very many snapshots of nothing":                 many.message(),
		"many snapshots of the same":                     deep.message(),
	}
}

func TestTheWorkForEachByteIsBounded(t *testing.T) {
	for name, message := range wordy() {
		got, err := work(t, message)
		require.NoError(t, err, name)
		t.Logf("%s: %d bytes, %.1f each", name, len(message), float64(got)/float64(len(message)))
		assert.LessOrEqual(t, got, mostWorkPerByte*len(message)+mostWork, name)
	}
}

// Whatever snapshots are made of, as long as it has few bytes.
func TestTheWorkForEachByteOfAnySnapshotIsBounded(t *testing.T) {
	seeds := uint64(50)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 0))
		some := func(most int) int { return random.IntN(1 + random.IntN(most)) }
		var w terse
		for range 1 + some(10) {
			stacks := make([]int, some(20))
			for i := range stacks {
				stacks[i] = some(4096)
			}
			var files []terseFile
			for i := range some(5) {
				f := terseFile{name: strings.Repeat(string(rune('a'+i)), some(5000)), places: places(some(500))}
				for j := range f.places {
					for range some(50) {
						f.places[j].stacks = append(f.places[j].stacks, random.IntN(1+len(stacks)))
					}
				}
				files = append(files, f)
			}
			w.snapshot(stacks, files...)
		}
		message := w.message()
		got, err := work(t, message, func(_ *bed, c *Config) { c.Limits.MaxProfileStacks = 1_000_000 })
		require.NoError(t, err)
		require.LessOrEqual(t, got, mostWorkPerByte*len(message)+mostWork, "seed %d, %d bytes", seed, len(message))
	}
}

// allocatedBy are how many objects were allocated by stacks of so many locations, and how
// many samples have such.
func allocatedBy(t *testing.T, message []byte) (objects map[int]int64, samples map[int]int) {
	t.Helper()
	b, s := alone(t)
	s.beginLife(origin.Identity{})
	s.receive(zmtp.Message{message})
	s.endLife()
	b.receiver.env.Finish()
	require.Len(t, b.Profiles.AllProfiles(), 1, "what is in one message is one")
	p := b.Profiles.AllProfiles()[0]
	checkValid(t, p)
	objects, samples = map[int]int64{}, map[int]int{}
	for _, sample := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
		depth := p.Dictionary().StackTable().At(int(sample.StackIndex())).LocationIndices().Len()
		objects[depth] += sample.Values().At(0)
		samples[depth]++
	}
	return objects, samples
}

func TestAnExpensiveAllocationCountsWithoutItsStack(t *testing.T) {
	var w terse
	w.snapshot([]int{4096, 3}, terseFile{"f", places(50, 0, 1)})
	objects, samples := allocatedBy(t, w.message())
	assert.Equal(t, int64(50)<<30, objects[1]+objects[4]+objects[4097], "everything counts")
	assert.EqualValues(t, 50, objects[4], "those of the stack that isn't deep")
	assert.Positive(t, samples[4097], "as long as it doesn't cost too much")
	assert.Less(t, objects[4097], int64(50))
}

func TestAStackThatAllocatesInALineAgainAndAgainCostsOnce(t *testing.T) {
	var w terse
	w.snapshot([]int{4096}, terseFile{"f", places(1, make([]int, 20_000)...)})
	objects, samples := allocatedBy(t, w.message())
	assert.Equal(t, map[int]int64{4097: 20_000, 1: 1<<30 - 20_000}, objects)
	assert.Equal(t, map[int]int{4097: 1, 1: 1}, samples)
}

func TestStacksAreOfTheirOwnSnapshot(t *testing.T) {
	var w terse
	w.snapshot([]int{3, 7}, terseFile{"f", places(1, 0)})
	w.snapshot(nil, terseFile{"f", places(1, 0)})
	w.snapshot([]int{5}, terseFile{"f", places(1, 0, 1)})
	objects, _ := allocatedBy(t, w.message())
	assert.Equal(t, map[int]int64{4: 1, 6: 1, 1: 3<<30 - 2}, objects)
}

func TestReadingEndsWithTheTimeOfTheShutdown(t *testing.T) {
	var long, events terse
	long.snapshot([]int{1}, terseFile{"f", places(1, make([]int, 100*callsPerCheck)...)})
	var lines terse
	lines.snapshot(nil, terseFile{"f", places(100 * callsPerCheck)})
	for range 100 * callsPerCheck {
		events.snapshot(nil)
	}
	for name, message := range map[string][]byte{
		"an allocation of very many stacks": long.message(),
		"very many allocations":             lines.message(),
		"very many events":                  events.message(),
	} {
		b, s := alone(t)
		s.beginLife(origin.Identity{})
		b.receiver.env.Expire()
		var r rbkit.Reader
		require.NoError(t, r.Open(rbkit.Documented, message))
		_, _ = s.process.readEvents(&r)
		assert.LessOrEqual(t, s.process.snapshots.open.dictionary.work, 30*callsPerCheck, name)
		assert.LessOrEqual(t, s.process.events, int64(callsPerCheck), name)
		s.endLife()
		b.receiver.env.Finish()
	}
	b, s := alone(t)
	s.beginLife(origin.Identity{})
	b.receiver.env.Expire()
	s.receive(zmtp.Message{events.message()})
	assert.Equal(t, 1, b.Log.FilterMessageSnippet("the rest of a message is dropped").Len())
	assert.Zero(t, b.Counter("bad_messages"), "it is as it should be")
	s.endLife()
	b.receiver.env.Finish()
}

func FuzzWork(f *testing.F) {
	for _, message := range wordy() {
		f.Add(message)
	}
	for _, m := range openCapture(f, "samples").Messages {
		if len(m.Data) < 20_000 {
			f.Add(m.Data)
		}
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		got, _ := work(t, message)
		require.LessOrEqual(t, got, mostWorkPerByte*len(message)+mostWork)
	})
}
