// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"strings"
	"unsafe"
)

// threads are those of a service of which something came of late, by a number from 1 on; 0: it
// is not known which.
type threads struct {
	numbers map[threadKey]uint32
	known   []thread
	// free are numbers of threads that were forgotten.
	free []uint32
	// more: there were more than are known.
	more bool
	// all is how many there are in the store.
	all *int
	// texts is what their names, and those of instances, take in bytes.
	texts int

	// instance is that of the spans that are folded, and last the thread that was asked
	// for last in it.
	instance   string
	last       int64
	lastNumber uint32
}

type threadKey struct {
	instance string
	id       int64
}

type thread struct {
	// name is what it was called last.
	name string
	// kept is how many spans are kept that are of it, and at the second in which it was seen
	// last.
	kept, at uint32
}

func newThreads(all *int) threads {
	return threads{numbers: map[threadKey]uint32{}, known: make([]thread, 1), all: all}
}

// setInstance sets the instance of the next threads.
func (t *threads) setInstance(instance string) {
	t.instance, t.lastNumber = Cut(instance, maxThreadName), 0
}

// number is that of a thread which is called so now, a second.
func (t *threads) number(id int64, name string, now uint32) uint32 {
	if t.lastNumber == 0 || t.last != id {
		t.last, t.lastNumber = id, t.find(id)
	}
	if t.lastNumber == 0 {
		return 0
	}
	asked := &t.known[t.lastNumber]
	asked.at = now
	if asked.name != name && name != "" {
		if name = Cut(name, maxThreadName); asked.name != name {
			t.texts += len(name) - len(asked.name)
			asked.name = strings.Clone(name)
		}
	}
	return t.lastNumber
}

func (t *threads) find(id int64) uint32 {
	n, ok := t.numbers[threadKey{t.instance, id}]
	switch {
	case ok:
		return n
	case !t.hasRoom():
		t.more = true
		return 0
	}
	*t.all++
	if last := len(t.free) - 1; last >= 0 {
		n = t.free[last]
		t.free = t.free[:last]
	} else {
		n = uint32(len(t.known))
		t.known = append(t.known, thread{})
	}
	t.numbers[threadKey{strings.Clone(t.instance), id}] = n
	t.texts += len(t.instance)
	return n
}

func (t *threads) hasRoom() bool { return len(t.numbers) < maxThreads && *t.all < maxAllThreads }

// forget forgets those that were not seen for so many seconds, and of which no span is kept.
// Those for which there was no room are known when they are seen next, if there is now. It is
// called before setInstance.
func (t *threads) forget(now, patience uint32) {
	for key, n := range t.numbers {
		if old := &t.known[n]; old.kept == 0 && now-old.at > patience {
			delete(t.numbers, key)
			t.texts -= len(key.instance) + len(old.name)
			*old = thread{}
			t.free = append(t.free, n)
			*t.all--
		}
	}
	t.more = t.more && !t.hasRoom()
}

func (t *threads) count() int { return len(t.numbers) }

// threadPlaceBytes is about the memory of a thread in the map.
const threadPlaceBytes = 72

// bytes is the memory of the threads.
func (t *threads) bytes() int64 {
	return int64(cap(t.known))*int64(unsafe.Sizeof(thread{})) + int64(len(t.numbers))*threadPlaceBytes + int64(t.texts)
}
