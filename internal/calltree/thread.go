// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "strings"

// threads are those of a service, by a number from 1 on; 0: it is not known which.
type threads struct {
	numbers map[threadKey]uint32
	// names are what the threads were called last.
	names []string
	// more: there were more than are known.
	more bool
	// all is how many there are in the store.
	all *int

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

func newThreads(all *int) threads {
	return threads{numbers: map[threadKey]uint32{}, names: make([]string, 1), all: all}
}

// begin says what instance the next threads are of.
func (t *threads) begin(instance string) {
	t.instance, t.lastNumber = Cut(instance, maxThreadName), 0
}

// number is that of a thread which is called so now.
func (t *threads) number(id int64, name string) uint32 {
	if t.lastNumber == 0 || t.last != id {
		t.last, t.lastNumber = id, t.find(id)
	}
	if n := t.lastNumber; n != 0 && t.names[n] != name && name != "" {
		if name = Cut(name, maxThreadName); t.names[n] != name {
			t.names[n] = strings.Clone(name)
		}
	}
	return t.lastNumber
}

func (t *threads) find(id int64) uint32 {
	n, ok := t.numbers[threadKey{t.instance, id}]
	switch {
	case ok:
		return n
	case len(t.numbers) >= maxThreads || *t.all >= maxAllThreads:
		t.more = true
		return 0
	}
	*t.all++
	n = uint32(len(t.names))
	t.names = append(t.names, "")
	t.numbers[threadKey{strings.Clone(t.instance), id}] = n
	return n
}

func (t *threads) count() int { return len(t.numbers) }
