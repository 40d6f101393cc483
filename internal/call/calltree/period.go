// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"slices"
	"time"
	"unsafe"
)

// earlier are values of a tree's nodes that do not belong to the current period. They move and disappear with their nodes. The
// growth of a node in the period is the difference. So folding a call costs nothing more.
type earlier struct {
	// values are by node. Nodes beyond them have none.
	values []values
	// from is the begin of the period, and epoch that of the forest since which calls belong to it.
	from  time.Time
	epoch uint32
	lost  Lost
}

const valuesBytes = int64(unsafe.Sizeof(values{}))

func (e *earlier) of(n uint32) values {
	if int(n) < len(e.values) {
		return e.values[n]
	}
	return values{}
}

func (e *earlier) add(n uint32, v *values) {
	if missing := int(n) + 1 - len(e.values); missing > 0 {
		e.values = append(e.values, make([]values, missing)...)
	}
	e.values[n].add(v)
}

// moveValues moves the values of a node to another.
func (e *earlier) moveValues(from, into uint32) {
	if v := e.of(from); v != (values{}) {
		e.values[from] = values{}
		e.add(into, &v)
	}
}

// nest clears the total of a node, which is part of another's.
func (e *earlier) nest(n uint32) {
	if int(n) < len(e.values) {
		e.values[n].total = 0
	}
}

func (e *earlier) drop(n uint32) {
	if int(n) < len(e.values) {
		e.values[n] = values{}
	}
}

// renumber gives the nodes new numbers, of which there are so many.
func (e *earlier) renumber(numbers []uint32, count int) {
	if e.values == nil {
		return
	}
	renumbered := make([]values, count)
	for n, v := range e.values {
		if v != (values{}) {
			renumbered[numbers[n]] = v
		}
	}
	e.values = renumbered
}

func (e *earlier) bytes() int64 { return int64(cap(e.values)) * valuesBytes }

// begin begins a period now, so that all values of the nodes are of earlier ones.
func (e *earlier) begin(t *tree, now time.Time, epoch uint32) {
	e.from, e.epoch, e.lost = now, epoch, t.lost
	e.values = slices.Grow(e.values[:0], len(t.nodes))[:len(t.nodes)]
	for i := range t.nodes {
		e.values[i] = t.nodes[i].values
	}
}

// minus is the difference to earlier values.
func (v *values) minus(o *values) values {
	return values{v.calls - o.calls, v.errors - o.errors, plus(v.total, -o.total), plus(v.self, -o.self)}
}
