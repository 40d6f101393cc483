// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

const (
	// leastCompacted is the length of slices that are left as they are.
	leastCompacted = 256
	// sparse is what part of a slice has to be used for it to be left as it is.
	sparse = 4
)

func isSparse(length, used int) bool { return length > leastCompacted && length > sparse*used }

// isSparse reports whether little of what the tree's slices have room for is used.
func (t *tree) isSparse() bool {
	f := &t.functions
	return isSparse(len(t.nodes), len(t.nodes)-t.released) || isSparse(len(f.all), len(f.all)-len(f.free))
}

// isLoose reports whether the tree's slices have room for much more than is used.
func (t *tree) isLoose() bool {
	f := &t.functions
	return isLoose(cap(t.nodes), len(t.nodes)-t.released) || isLoose(cap(f.all), len(f.all)-len(f.free)) || cap(t.pairs) > leastCompacted
}

const (
	// loose is for what part more than is used a slice may have room where memory is short,
	// one part of so many.
	loose = 4
	// spareRoom is for what part more a slice has room that was compacted. Without it the
	// next thing would have it grow by a quarter.
	spareRoom = 8
)

func isLoose(room, used int) bool { return room > leastCompacted && room-used > used/loose }

func withSpareRoom(used int) int { return used + used/spareRoom }

// compact gives back what trees once took and don't use any more. Without it each service
// would hold as much as it had when it had most, whatever max_nodes is for all of them. No
// numbers of nodes and functions may be held but those that the store holds.
func (s *Store) compact() { s.compactAll((*tree).isSparse) }

// compactAll compacts the trees of which that is said.
func (s *Store) compactAll(which func(*tree) bool) {
	nodes, functions := make([][]uint32, len(s.trees)), make([][]uint32, len(s.trees))
	isMoved := false
	for i, t := range s.trees {
		if t == nil || !which(t) {
			continue
		}
		nodes[i], functions[i] = t.compact()
		isMoved = true
		if t == t.owner.calls {
			t.owner.instance = functions[i][t.owner.instance]
		}
	}
	if !isMoved {
		return
	}
	for i := range s.seen.spans {
		if span := &s.seen.spans[i]; span.state != seenFree && nodes[span.tree] != nil {
			span.node = nodes[span.tree][span.node]
		}
	}
	for i := range s.kept.spans {
		if span := &s.kept.spans[i]; functions[span.tree] != nil {
			span.function = functions[span.tree][span.function]
			span.instance = functions[span.tree][span.instance]
		}
	}
}

// compact leaves only what is used, and says which numbers nodes and functions have now.
func (t *tree) compact() (nodes, functions []uint32) {
	functions = t.functions.compact()
	nodes = make([]uint32, len(t.nodes))
	used := make([]node, 0, withSpareRoom(len(t.nodes)-t.released))
	for i := range t.nodes {
		if at := &t.nodes[i]; i == top || at.state != stateFree {
			nodes[i] = uint32(len(used))
			used = append(used, *at)
		}
	}
	t.nodes, t.free, t.released, t.children, t.pairs = used, 0, 0, index{}, nil
	for i := range used {
		at := &used[i]
		at.parent, at.first, at.next, at.prev = nodes[at.parent], nodes[at.first], nodes[at.next], nodes[at.prev]
		at.label = newLabel(functions[at.label.function()], at.label.mark())
		if i != top && at.state == statePlaced {
			t.children.add(t.hashOf(uint32(i)), uint32(i), t)
		}
	}
	for _, w := range t.windows {
		values := make(map[uint32]values, len(w.values))
		for n, v := range w.values {
			values[nodes[n]] = v
		}
		w.values = values
	}
	return nodes, functions
}

// compact leaves only functions that are used, and says which numbers they have now.
func (f *functions) compact() (numbers []uint32) {
	numbers = make([]uint32, len(f.all))
	used := make([]function, 1, withSpareRoom(len(f.all)-len(f.free)))
	used[0] = f.all[0]
	for i, fn := range f.all {
		if i > 0 && fn.refs > 0 {
			numbers[i] = uint32(len(used))
			used = append(used, fn)
		}
	}
	f.all, f.free, f.byName = used, nil, index{}
	for n := range used[1:] {
		f.byName.add(used[n+1].hash, uint32(n)+1, f)
	}
	return numbers
}
