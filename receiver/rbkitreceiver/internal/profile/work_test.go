// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/interruption"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// mostWorkPerByte bounds the work of a dictionary for each byte of a message, and mostWork the
// work of a message beside that.
const (
	mostWorkPerByte = 40
	mostWork        = 1000
)

// reading makes profiles of messages, as a process does.
type reading struct {
	t         testing.TB
	samples   Samples
	snapshots Snapshots
	// delivered are the finished profiles.
	delivered []pprofile.Profiles
	// interrupted is the error of an interruption; nil: reading goes on.
	interrupted error
}

func newReading(t testing.TB, maxStacks int) *reading {
	t.Helper()
	r := &reading{t: t}
	config := receiverkit.DefaultConfig()
	kit, err := receiverkit.New(receivertest.NewNopSettings(metadata.Type), &config, receiverkit.Names{})
	require.NoError(t, err)
	settings := &Settings{
		Kit: kit, Interval: time.Second, MaxFrames: 4096, MaxStacks: maxStacks, MaxBytes: 32 << 20,
		Deliver: func(p Parcel) { r.delivered = append(r.delivered, p.Profiles) },
	}
	of := origin.New(&origin.Settings{Resource: pcommon.NewResource}, origin.Identity{}, recorded, 0)
	r.samples, r.snapshots = NewSamples(settings, of), NewSnapshots(settings, of)
	return r
}

// read reads a message.
func (r *reading) read(message []byte) error {
	r.t.Helper()
	var from rbkit.Reader
	dialect, err := rbkit.DialectOf(message)
	if err != nil {
		return err
	}
	if err := from.Open(dialect, message); err != nil {
		return err
	}
	stop := interruption.New(context.Background(), nil, func() error { return r.interrupted })
	for from.Next() {
		switch e := from.Event(); e.Kind {
		case rbkit.CPUSample:
			r.samples.Count(int64(e.Time), e.Frames, recorded)
		case rbkit.AllocationSnapshot:
			r.snapshots.BeginEvent(int64(e.Time), e.Snapshot.Size())
			for id, frames := range e.Snapshot.AllStacks() {
				r.snapshots.AddStack(id, frames)
			}
			for a := range e.Snapshot.AllAllocations() {
				r.snapshots.AddAllocation(&a, &stop)
			}
		}
	}
	return from.Err()
}

// finish returns all profiles, which have to be valid.
func (r *reading) finish() []pprofile.Profiles {
	r.t.Helper()
	r.samples.Deliver()
	r.snapshots.Deliver()
	for _, p := range r.delivered {
		profiletest.CheckValid(r.t, p)
	}
	return r.delivered
}

// work returns the work of the dictionaries of open profiles.
func (r *reading) work() (done int) {
	if r.snapshots.open != nil {
		done += r.snapshots.open.dictionary.work
	}
	if r.samples.dictionary != nil {
		done += r.samples.dictionary.work
	}
	return done
}

// work returns the work of a message.
func work(t testing.TB, message []byte, maxStacks int) (done int, wrong error) {
	r := newReading(t, maxStacks)
	wrong = r.read(message)
	return r.work(), wrong
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

// wordy returns messages with much content in few bytes.
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
		got, err := work(t, message, 10_000)
		require.NoError(t, err, name)
		t.Logf("%s: %d bytes, %.1f each", name, len(message), float64(got)/float64(len(message)))
		assert.LessOrEqual(t, got, mostWorkPerByte*len(message)+mostWork, name)
	}
}

// The bound holds for random snapshots with few bytes.
func TestTheWorkForEachByteOfAnySnapshotIsBounded(t *testing.T) {
	for seed := range uint64(50) {
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
		got, err := work(t, message, 1_000_000)
		require.NoError(t, err)
		require.LessOrEqual(t, got, mostWorkPerByte*len(message)+mostWork, "seed %d, %d bytes", seed, len(message))
	}
}

// allocatedBy are how many objects were allocated by stacks of so many locations, and how
// many samples have such.
func allocatedBy(t *testing.T, message []byte) (objects map[int]int64, samples map[int]int) {
	t.Helper()
	r := newReading(t, 10_000)
	require.NoError(t, r.read(message))
	require.Len(t, r.finish(), 1, "all snapshots of a message are one")
	p := r.delivered[0]
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

func TestAnAllocationOfVeryManyStacksCanBeInterrupted(t *testing.T) {
	var w terse
	const callsPerCheck = 1024
	w.snapshot([]int{1}, terseFile{"f", places(1, make([]int, 100*callsPerCheck)...)})
	r := newReading(t, 10_000)
	r.interrupted = errors.New("the test ends it")
	require.NoError(t, r.read(w.message()))
	assert.LessOrEqual(t, r.work(), 30*callsPerCheck)
}

func FuzzWork(f *testing.F) {
	for _, message := range wordy() {
		f.Add(message)
	}
	for _, m := range samplesCapture(f).Messages {
		if len(m.Data) < 20_000 {
			f.Add(m.Data)
		}
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		got, _ := work(t, message, 10_000)
		require.LessOrEqual(t, got, mostWorkPerByte*len(message)+mostWork)
	})
}

func samplesCapture(t testing.TB) *capture.Capture {
	t.Helper()
	c, err := capture.Open(filepath.Join("..", "..", "..", "..", "testdata", "rbkit", "samples.zip"))
	require.NoError(t, err)
	return c
}
