// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitserver

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// LoadOptions describe a generated program.
type LoadOptions struct {
	// Events is how many events a message has: objects that are created and destroyed in
	// the released dialect, CPU samples in the documented one, and others now and then,
	// among them snapshots of allocations in the documented one.
	Events int
	// Classes is the number of classes.
	Classes int
	Seed    uint64
}

// Load makes the events of a program: the same by the same seed. It is for one goroutine.
type Load struct {
	options LoadOptions
	dialect rbkit.Dialect
	random  *rand.Rand
	classes [][]byte
	stacks  [][]rbkit.Frame
	// living are IDs of objects that were not destroyed, next the next one's.
	living []uint64
	next   uint64
	// created and messages are how many there were.
	created, messages uint64
	dumps             uint64
}

// Intervals of events other than objects, in messages.
const (
	messagesPerGC       = 20
	messagesPerStats    = 50
	messagesPerSnapshot = 30 // in the documented dialect
	// snapshotFiles is of how many files a snapshot of allocations is at most.
	snapshotFiles = 16
	// partObjects is the number of objects in a part of a dump.
	partObjects = 1000
	// idStep is between IDs of objects.
	idStep = 20
	// maxLiving bounds the living objects.
	maxLiving = 100_000
)

// NewLoad returns a program.
func NewLoad(dialect rbkit.Dialect, o LoadOptions) *Load {
	l := &Load{options: o, dialect: dialect, random: rand.New(rand.NewPCG(o.Seed, 0)), next: idStep}
	for i := range o.Classes {
		l.classes = append(l.classes, fmt.Appendf(nil, "Shop::Class%d", i))
	}
	for i := range 32 {
		l.stacks = append(l.stacks, l.stack(1+i))
	}
	return l
}

func (l *Load) stack(depth int) (frames []rbkit.Frame) {
	for i := range depth {
		method := fmt.Appendf(nil, "method%d", l.random.IntN(100))
		frames = append(frames, rbkit.Frame{
			Method: method, Label: fmt.Appendf(nil, "Shop::Class%d#%s", i, method), File: fmt.Appendf(nil, "/shop/lib/class%d.rb", i),
			Line: uint64(1 + i), Thread: 4711,
		})
	}
	return frames
}

// Message adds the events of one message, which has to be of the program's dialect.
func (l *Load) Message(at time.Time, into *rbkit.Collection) error {
	millis := rbkit.Time(at.UnixMilli())
	l.messages++
	for range l.options.Events {
		if err := l.event(millis, into); err != nil {
			return err
		}
	}
	if l.messages%messagesPerGC == 0 {
		for _, k := range []rbkit.Kind{rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep} {
			if err := into.GC(k, millis); err != nil {
				return err
			}
		}
	}
	if l.dialect == rbkit.Documented && l.messages%messagesPerSnapshot == 0 {
		if err := l.snapshot(millis, into); err != nil {
			return err
		}
	}
	if l.messages%messagesPerStats == 0 {
		return into.Stats(millis, []rbkit.Stat{
			{Name: "count", Value: l.messages / messagesPerGC},
			{Name: "heap_live_slots", Value: uint64(len(l.living))},
			{Name: "total_allocated_objects", Value: l.created},
			{Name: "heap_swept_slots", Missing: true},
		})
	}
	return nil
}

// event adds an event of the dialect's most frequent kind.
func (l *Load) event(millis rbkit.Time, into *rbkit.Collection) error {
	if l.dialect == rbkit.Released {
		return l.object(millis, into)
	}
	return into.Sample(millis, l.stacks[l.random.IntN(len(l.stacks))])
}

// object adds one that is created, or, as often, one that is destroyed.
func (l *Load) object(millis rbkit.Time, into *rbkit.Collection) error {
	if n := len(l.living); n > 0 && (n >= maxLiving || l.random.IntN(2) == 0) {
		i := l.random.IntN(n)
		id := l.living[i]
		l.living[i] = l.living[n-1]
		l.living = l.living[:n-1]
		return into.Destroyed(millis, id)
	}
	id := l.next
	l.living = append(l.living, id)
	l.next += idStep
	l.created++
	return into.Created(millis, id, l.classes[l.random.IntN(len(l.classes))])
}

// snapshot adds allocations in some files: in each, a class with known stacks, and a class
// without.
func (l *Load) snapshot(millis rbkit.Time, into *rbkit.Collection) error {
	var stacks []rbkit.Stack
	for i, frames := range l.stacks {
		stacks = append(stacks, rbkit.Stack{ID: uint64(1 + i), Frames: frames})
	}
	var files []rbkit.FileAllocations
	for i := range min(len(l.classes), snapshotFiles) {
		by := []rbkit.StackCount{
			{ID: uint64(1 + l.random.IntN(len(stacks)/2)), Count: uint64(1 + l.random.IntN(100))},
			{ID: uint64(1 + len(stacks)/2 + l.random.IntN(len(stacks)/2)), Count: uint64(1 + l.random.IntN(100))},
		}
		files = append(files, rbkit.FileAllocations{File: fmt.Appendf(nil, "/shop/lib/class%d.rb", i), Allocations: []rbkit.PlaceAllocations{
			{Line: uint64(1 + i), Class: l.classes[i], Size: 40, Count: by[0].Count + by[1].Count, Stacks: by},
			{Line: uint64(1 + i), Class: []byte("String"), Size: 40, Count: uint64(1 + l.random.IntN(100))},
		}})
	}
	return into.Snapshot(millis, stacks, files)
}

// Dump adds a dump of so many objects, each of which refers to the one before it.
func (l *Load) Dump(at time.Time, objects int, into *rbkit.Collection) error {
	l.dumps++
	for begin := 0; begin < objects; begin += partObjects {
		var part []rbkit.DumpObject
		for i := begin; i < min(begin+partObjects, objects); i++ {
			part = append(part, rbkit.DumpObject{
				ID: uint64(idStep * (i + 1)), Class: l.classes[i%len(l.classes)],
				References: []uint64{uint64(idStep * max(i, 1))}, Size: 40,
			})
		}
		if err := into.Dump(rbkit.Time(at.UnixMilli()), l.dumps, uint64(objects), part); err != nil {
			return err
		}
	}
	return nil
}
