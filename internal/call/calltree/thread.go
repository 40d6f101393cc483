// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"strings"
	"unsafe"
)

// threads are the recent threads of a service, by a number from 1 on; 0: not known.
type threads struct {
	numbers map[threadKey]uint32
	known   []thread
	// free are numbers of forgotten threads.
	free []uint32
	// more: there were more threads than are known.
	more bool
	// all is the number of threads in the store.
	all *int
	// texts is the memory of their names and of instances, in bytes.
	texts int

	// instance is that of the current spans. last is the last thread of it that was looked up.
	instance   string
	last       int64
	lastNumber uint32
}

type threadKey struct {
	instance string
	id       int64
}

type thread struct {
	// name is its latest name.
	name string
	// kept is the number of its kept spans, and at the second of its last call or sample.
	kept, at uint32
}

func newThreads(all *int) threads {
	return threads{numbers: map[threadKey]uint32{}, known: make([]thread, 1), all: all}
}

// setInstance sets the instance of the next threads.
func (t *threads) setInstance(instance string) {
	t.instance, t.lastNumber = Cut(instance, maxThreadName), 0
}

// number is the number of a thread with its current name. now is a second.
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

// forget forgets threads that were silent for more than patience seconds and have no kept
// spans. Threads without a number get one at their next call, if there is room then. It is
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
