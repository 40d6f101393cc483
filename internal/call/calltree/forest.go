// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "slices"

// forest has the trees of all services, by number.
type forest struct {
	// trees and owners have nil for a number that is free.
	trees  []*tree
	owners []*service
	used   usage
	// bytes is the memory of all trees when they were measured last.
	bytes int64
	// epoch is the number of resets and windows so far.
	epoch    uint32
	counters *Counters
	// planted is the id of the last tree.
	planted uint64
	// order is memory to use again.
	order []uint32
}

// plant makes a tree of a service.
func (f *forest) plant(sv *service) *tree {
	t := newTree(&f.used)
	number := slices.Index(f.trees, nil)
	if number < 0 {
		number = len(f.trees)
		f.trees, f.owners = append(f.trees, nil), append(f.owners, nil)
	}
	t.number = uint32(number)
	f.identify(t)
	f.trees[number], f.owners[number] = t, sv
	return t
}

// identify gives a tree an id of its own.
func (f *forest) identify(t *tree) {
	f.planted++
	t.id = f.planted
}

// remove removes a tree to which nothing refers.
func (f *forest) remove(t *tree) {
	f.trees[t.number], f.owners[t.number] = nil, nil
	f.bytes -= t.measured
}

// measure measures the memory of a tree that has changed. A service counts with its calls.
func (f *forest) measure(t *tree) {
	now := t.bytes()
	if sv := f.owners[t.number]; t == sv.calls {
		now += sv.bytes()
	}
	f.bytes += now - t.measured
	t.measured = now
}

func (f *forest) measureAll() {
	for _, t := range f.trees {
		if t != nil {
			f.measure(t)
		}
	}
}

// compact compacts the trees for which the function reports true. It returns the new
// numbers of nodes and functions of each, or nil, nil if there is no such tree.
func (f *forest) compact(which func(*tree) bool) (nodes, functions [][]uint32) {
	for i, t := range f.trees {
		if t == nil || !which(t) {
			continue
		}
		if nodes == nil {
			nodes, functions = make([][]uint32, len(f.trees)), make([][]uint32, len(f.trees))
		}
		nodes[i], functions[i] = t.compact()
		if sv := f.owners[i]; t == sv.calls {
			sv.instance = functions[i][sv.instance]
		}
	}
	return nodes, functions
}

// foldSmallest folds about the given number of the smallest paths of some trees. Until it is
// enough it doubles the number, up to most.
func (f *forest) foldSmallest(trees []*tree, number, most int, enough func() bool) {
	for ; !enough() && number <= most; number *= 2 {
		var sizes sizes
		for _, t := range trees {
			if t != nil {
				sizes.add(t)
			}
		}
		limit := sizes.smallest(number)
		for _, t := range trees {
			if t != nil {
				f.order = t.preOrder(f.order[:0])
				folded := foldUpTo(t, limit, f.order)
				f.counters.FoldedPaths += folded
				t.lost.FoldedPaths += folded
			}
		}
	}
}

// join adds the paths of a tree to another's. Names have at most so many bytes. With periods, the calls are of earlier ones:
// the periods of their own tree had them.
func (f *forest) join(from, into *tree, maxNameBytes int, hasPeriods bool) {
	numbers := make([]uint32, len(from.nodes))
	f.order = from.preOrder(f.order[:0])
	for _, n := range f.order[1:] {
		at := &from.nodes[n]
		l := at.label
		if fn := &from.functions.all[l.function()]; l.function() != 0 {
			function := into.functions.number(fn.name, maxNameBytes)
			into.functions.place(function, fn.file, fn.line, maxNameBytes)
			l = newLabel(function, l.mark())
		}
		numbers[n] = into.child(numbers[at.parent], l)
		into.add(numbers[n], &at.values)
		if hasPeriods {
			into.earlier.add(numbers[n], &at.values)
		}
	}
	into.lost.add(from.lost)
}

// isSparseTree reports whether little of the tree's slices is in use.
func isSparseTree(t *tree) bool {
	f := &t.functions
	return isSparse(len(t.nodes), len(t.nodes)-t.released) || isSparse(len(f.all), len(f.all)-len(f.free))
}

// isLooseTree reports whether the tree's slices have room for much more than is in use.
func isLooseTree(t *tree) bool {
	f := &t.functions
	return isLoose(cap(t.nodes), len(t.nodes)-t.released) || isLoose(cap(f.all), len(f.all)-len(f.free)) || cap(t.pairs) > leastCompacted
}
