// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "unsafe"

// room keeps a store below the bounds of its settings, and frees memory on request.
type room struct {
	settings *Settings
	forest   *forest
	seen     *seen
	kept     *keptSpans
	// failed is the memory that was held when less was freed than Settings.Hold demanded, in
	// bytes, and failedAt the second of it; 0: enough was freed.
	failed   int64
	failedAt uint32
}

const (
	// shrinkBy is the part of a bound that is freed at a time, as its denominator.
	shrinkBy = 10
	// waitingPart is the largest part of all nodes that may wait, as its denominator. Half as
	// many are left.
	waitingPart = 10
	// shedSpare is the part of the remaining memory that is freed beyond the request, as its
	// denominator. So the store seldom has to free memory.
	shedSpare = 8
	// retry is the growth, in bytes, after which the store tries again in the same second to
	// free memory.
	retry = 1 << 20
)

// makeForOne makes room for one more span or sample.
func (r *room) makeForOne() {
	r.seen.makeRoomForOne(r.settings.MaxPending)
	r.shrinkFull()
}

// shrinkFull makes room for nodes and names if there is none left.
func (r *room) shrinkFull() {
	if r.forest.used.nodes >= r.settings.MaxNodes {
		r.shrinkNodes()
		r.compact(isSparseTree)
	}
	if r.forest.used.names >= r.settings.MaxNamesBytes {
		r.shrinkNames()
		r.compact(isSparseTree)
	}
}

// shrinkNodes frees a tenth of the nodes:
//
//  1. If many nodes wait, it gives up those that wait longest, first those whose caller
//     arrived elsewhere. Small trees have few paths to fold.
//  2. It folds the smallest paths of all trees. The size of a path is its part of its tree,
//     in whatever unit the tree counts.
//  3. If these were too few, because each left a node "(folded)", it folds twice as many.
func (r *room) shrinkNodes() {
	if most := r.settings.MaxNodes / waitingPart; r.seen.count(seenWaiting)+r.seen.count(seenElsewhere) > most {
		r.seen.reduceWaiting(most / 2)
	}
	enough := func() bool { return r.forest.used.nodes <= r.settings.MaxNodes-r.settings.MaxNodes/shrinkBy }
	r.forest.foldSmallest(r.forest.trees, max(1, r.settings.MaxNodes/shrinkBy), 4*r.settings.MaxNodes, enough)
}

// shrinkNames frees a tenth of the bytes of names. It touches only the trees whose names take
// most, so that a service with long names, such as SQL, does not cost the others:
//
//  1. It drops the kept spans of such a tree, which hold their names.
//  2. It folds the tree's smallest paths.
//  3. If that frees nothing, it goes to the next tree. The names that are left are those of
//     instances, one for each service.
func (r *room) shrinkNames() {
	enough := func() bool {
		return r.forest.used.names <= r.settings.MaxNamesBytes-r.settings.MaxNamesBytes/shrinkBy
	}
	exhausted := map[*tree]bool{}
	for !enough() {
		t := r.largest(exhausted, func(t *tree) int64 { return int64(t.functions.bytes) })
		if t == nil {
			return
		}
		before := r.forest.used.names
		if r.kept.dropOf(t.number); !enough() {
			r.forest.foldSmallest([]*tree{t}, max(1, t.live/shrinkBy), 4*t.live, enough)
		}
		if r.forest.used.names == before {
			exhausted[t] = true
		}
	}
}

// largest is the tree with the largest size, of those that are not exhausted; nil: none. A
// size below 0 does not count.
func (r *room) largest(exhausted map[*tree]bool, size func(*tree) int64) (largest *tree) {
	for _, t := range r.forest.trees {
		if t != nil && !exhausted[t] && size(t) >= 0 && (largest == nil || size(t) > size(largest)) {
			largest = t
		}
	}
	return largest
}

// hold reports the memory of the store to Settings.Hold, and frees the demanded bytes. other is
// the memory that cannot be freed. After a failure it waits for the next second, or for
// growth.
func (r *room) hold(other int64, second func() uint32) {
	held := other + r.bytes()
	excess := r.settings.Hold(held)
	if excess <= 0 {
		r.failed = 0
		return
	}
	if now := second(); r.failed > 0 && r.failedAt == now && held < r.failed+retry {
		return
	}
	r.shed(other, held-excess)
	r.failed = 0
	if held = other + r.bytes(); r.settings.Hold(held) > 0 {
		r.failed, r.failedAt = held, second()
	}
}

// bytes is the memory that can be freed.
func (r *room) bytes() int64 {
	return r.forest.bytes + r.seen.bytes() + r.kept.bytes() + int64(cap(r.forest.order))*int64(unsafe.Sizeof(uint32(0)))
}

// shed frees memory until the store holds an eighth less than most, if it holds more than
// that:
//
//  1. It frees memory that is not in use.
//  2. It drops kept spans, the oldest half of them at a time.
//  3. It halves the largest consumer, again and again: the calls that are remembered or
//     waited for, or the smallest paths of a tree. So a service that holds less than others
//     is not folded for them.
func (r *room) shed(other, most int64) {
	if other+r.bytes() <= most {
		return
	}
	most -= most/shedSpare + other
	r.forest.order = nil
	r.tighten()
	shed := &r.forest.counters.Shed
	for len(r.kept.spans) > 0 && r.bytes() > most {
		number := (len(r.kept.spans) + 1) / 2
		r.kept.dropOldest(number)
		shed.KeptSpans += uint64(number)
	}
	exhausted := map[*tree]bool{}
	for r.bytes() > most {
		t := r.largest(exhausted, func(t *tree) int64 {
			if t.live == 0 {
				return -1
			}
			return t.measured
		})
		switch {
		case r.seen.total() > 0 && (t == nil || r.seen.bytes() > t.measured):
			shed.Calls += r.forgetHalf()
		case t == nil:
			return
		case !r.foldHalf(t):
			exhausted[t] = true
		}
		r.tighten()
	}
}

// forgetHalf forgets half of the calls that are remembered or waited for, and returns their
// number.
func (r *room) forgetHalf() uint64 {
	number := (r.seen.total() + 1) / 2
	for range number {
		r.seen.forgetOldest()
	}
	return uint64(number)
}

// foldHalf folds the smallest half of a tree's paths, and reports whether there were any.
func (r *room) foldHalf(t *tree) bool {
	counters := r.forest.counters
	live, folded := t.live, counters.FoldedPaths
	r.forest.foldSmallest([]*tree{t}, max(1, live/2), 4*live, func() bool { return t.live <= live/2 })
	r.forest.order = nil
	counters.Shed.Paths += counters.FoldedPaths - folded
	return t.live < live
}

// tighten frees memory that is not in use.
func (r *room) tighten() {
	if isLoose(cap(r.seen.spans), r.seen.total()) {
		r.seen.compact()
	}
	r.compact(isLooseTree)
	r.forest.measureAll()
}

// compact frees unused memory of the trees for which the function reports true. Without it
// each service would hold the most memory that it ever had, though max_nodes allows less for
// all of them. Only the store may hold numbers of nodes and functions meanwhile.
func (r *room) compact(which func(*tree) bool) {
	if nodes, functions := r.forest.compact(which); nodes != nil {
		r.seen.moveNodes(nodes)
		r.kept.moveFunctions(functions)
	}
}
