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

// Tree describes a tree of a store.
type Tree struct {
	Service string
	Kind    Kind
	// Number identifies the tree: after a reset, or if its service was evicted in between, it is another one.
	Number uint64
	// Changes is another number after data of its service arrived.
	Changes uint64
	// LastSeen is the time of the service's last call or sample.
	LastSeen time.Time
	// Paths is the number of paths, with those that wait.
	Paths int
}

// Trees describes all trees with data.
func (s *Store) Trees() []Tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Tree
	for _, sv := range s.services.byName {
		for _, kind := range sv.kinds() {
			t := s.services.tree(sv.name, kind)
			all = append(all, Tree{sv.name, kind, t.id, sv.arrivals, sv.last, t.live})
		}
	}
	return all
}

// Growth is the growth of a tree in its current period.
type Growth struct {
	// Snapshot has the growth. From is the begin of the period, or of the tree if that is later.
	Snapshot
	// Number is that of the tree: see [Tree].
	Number uint64
}

// Growth returns the growth of a tree in its current period, or false if there is no tree. With end, the next period
// begins at the same moment. Settings.Periods must be set.
//
// A call that waits for its caller at the end of a period is below [MissingParent] there. If the caller arrives later, only
// later calls have it. A call that arrives later than its caller does not reduce the caller's own time in an earlier period.
func (s *Store) Growth(service string, kind Kind, end bool) (Growth, bool) {
	s.mu.Lock()
	t := s.services.tree(service, kind)
	if t == nil {
		s.mu.Unlock()
		return Growth{}, false
	}
	owner := s.forest.owners[t.number]
	g := Growth{Number: t.id, Snapshot: Snapshot{
		Service: service, Kind: kind, From: latest(t.earlier.from, owner.from), To: s.now(),
		Lost: t.lost.since(t.earlier.lost), Missing: owner.missing,
	}}
	copied := t.copy()
	for i := range copied.nodes {
		before := t.earlier.of(uint32(i))
		copied.nodes[i].values = copied.nodes[i].minus(&before)
	}
	if end {
		s.beginPeriod(t)
	}
	s.mu.Unlock()
	g.Nodes = snapshotNodes(copied)
	return g, true
}

// EndPeriod begins the next period of a tree without returning the growth of the last one. It needs memory only for the
// values.
func (s *Store) EndPeriod(service string, kind Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.services.tree(service, kind); t != nil {
		s.beginPeriod(t)
	}
}

func (s *Store) beginPeriod(t *tree) {
	s.forest.epoch++
	t.earlier.begin(t, s.now(), s.forest.epoch)
	s.forest.measure(t)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Restore adds a tree that an earlier store had. Its calls are of an earlier period. The service has been there since
// Snapshot.From, and its last data arrived at Snapshot.To. Calls that waited for their callers stay below [MissingParent].
func (s *Store) Restore(snapshot Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	sv, ok := s.services.byName[Cut(snapshot.Service, s.settings.MaxNameBytes)]
	switch {
	case ok:
	case len(s.services.byName) < s.settings.MaxServices:
		sv = s.services.create(Cut(snapshot.Service, s.settings.MaxNameBytes))
		sv.from, sv.last = snapshot.From, snapshot.To
		// It has been there longer than those that come now.
		sv.shown.seconds = uint32(min(max(snapshot.To.Sub(snapshot.From)/time.Second, 0), 1<<31))
	default:
		sv = s.services.other()
	}
	sv.from = earliest(sv.from, snapshot.From)
	sv.last = latest(sv.last, snapshot.To)
	t := sv.calls
	calls, errors := countsOf(snapshot.Nodes)
	if snapshot.Kind == Calls {
		sv.countCalls(calls, errors)
		sv.missing = snapshot.Missing
	} else if t = s.services.profile(sv, snapshot.Kind); t == nil {
		s.counters.DroppedSamples += calls
		return
	}
	t.graft(snapshot.Nodes, s.settings.MaxNameBytes, true)
	t.lost.add(snapshot.Lost)
	t.earlier.lost.add(snapshot.Lost)
	sv.shown.add(now, 1)
	s.room.shrinkFull()
	s.settle(sv)
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// countsOf are the calls and errors of all nodes.
func countsOf(nodes []Node) (calls, errors uint64) {
	for i := range nodes {
		calls, errors = plusCount(calls, nodes[i].Calls), plusCount(errors, nodes[i].Errors)
	}
	return calls, errors
}

// graft adds the nodes of a snapshot. Names have at most so many bytes. With isEarlier, their values are of an earlier period.
// Nodes below one that stands for several are added to that.
func (t *tree) graft(nodes []Node, maxNameBytes int, isEarlier bool) {
	places := make([]uint32, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		parent := uint32(top)
		if n.Parent >= 0 {
			parent = places[n.Parent]
		}
		v := values{n.Calls, n.Errors, n.Total, n.Self}
		switch above := t.nodes[parent].label; {
		case parent != top && (above == labelFolded || above == labelDeep):
			places[i], v.total = parent, 0
		case n.Mark > Truncated:
			places[i] = t.child(parent, newLabel(0, n.Mark))
		default:
			function := t.functions.number(n.Function, maxNameBytes)
			t.functions.place(function, n.File, n.Line, maxNameBytes)
			places[i] = t.child(parent, newLabel(function, n.Mark))
		}
		if n.Mark == MissingParent {
			v.total = v.self // a snapshot adds those below
		}
		t.add(places[i], &v)
		if isEarlier {
			t.earlier.add(places[i], &v)
		}
	}
}

// Sum adds up trees of one service and kind, within a number of paths. One goroutine can use it.
type Sum struct {
	forest   forest
	counters Counters
	tree     *tree
	snapshot Snapshot
	most     int
}

// NewSum returns a sum of no trees. Beyond most paths, the smallest are folded.
func NewSum(most int) *Sum {
	s := &Sum{most: max(most, LeastNodes)}
	s.forest.counters = &s.counters
	s.tree = newTree(&s.forest.used)
	s.forest.trees, s.forest.owners = []*tree{s.tree}, []*service{nil}
	return s
}

// Add adds a tree.
func (s *Sum) Add(other Snapshot) {
	sum := &s.snapshot
	if sum.From.IsZero() {
		sum.Service, sum.Kind, sum.From, sum.To = other.Service, other.Kind, other.From, other.To
	}
	sum.From, sum.To = earliest(sum.From, other.From), latest(sum.To, other.To)
	if other.Missing.Classes > 0 {
		sum.Missing = other.Missing
	}
	for _, remark := range other.Remarks {
		if !slices.Contains(sum.Remarks, remark) {
			sum.Remarks = append(sum.Remarks, remark)
		}
	}
	s.tree.lost.add(other.Lost)
	s.tree.graft(other.Nodes, maxSumName, false)
	if s.tree.live > s.most {
		s.forest.foldSmallest(s.forest.trees, max(1, s.most/shrinkBy), 4*s.most, func() bool { return s.tree.live <= s.most-s.most/shrinkBy })
	}
}

// maxSumName bounds names in sums. Settings.MaxNameBytes cut them before.
const maxSumName = 1 << 20

// Snapshot returns the sum. It must not be used afterwards.
func (s *Sum) Snapshot() Snapshot {
	s.snapshot.Lost = s.tree.lost
	s.snapshot.Nodes = snapshotNodes(s.tree)
	return s.snapshot
}
