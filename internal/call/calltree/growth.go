// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

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
