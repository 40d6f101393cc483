// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Store has the trees of all services. Several goroutines can use it. A reader holds its
// lock while it copies, and works on the copy.
//
// Its parts own its state: forest the trees, seen the single spans, kept the latest spans,
// services the services. room frees memory of all of them.
type Store struct {
	settings Settings
	now      func() time.Time
	start    time.Time

	mu       sync.Mutex
	counters Counters
	forest   forest
	seen     seen
	kept     keptSpans
	services services
	room     room
	// expired is the last second in which old spans were forgotten, and sweptThreads that of
	// old threads.
	expired, sweptThreads uint32
	// windows is the number of open windows.
	windows int
	// hashes are those of spans that are folded together: memory to use again.
	hashes [512]uint32
}

// NewStore returns an empty store.
func NewStore(settings Settings) *Store {
	s := &Store{settings: settings, now: settings.Now}
	if s.now == nil {
		s.now = time.Now
	}
	s.start = s.now()
	s.forest = forest{counters: &s.counters}
	s.seen = newSeen(&s.forest)
	s.kept = newKeptSpans(settings.MaxKeptSpans, &s.forest)
	s.services = newServices(&s.settings, s.now, &s.forest, &s.seen, &s.kept)
	s.room = room{settings: &s.settings, forest: &s.forest, seen: &s.seen, kept: &s.kept}
	return s
}

// second is the number of seconds since the store was made.
func (s *Store) second() uint32 { return uint32(max(0, s.now().Sub(s.start)) / time.Second) }

// Fold folds spans of one service. It copies the texts that it keeps.
func (s *Store) Fold(from Origin, spans []Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	s.expire(now)
	sv := s.services.named(from.Service, uint64(len(spans)), now)
	sv.countArrival(s.now(), now, uint64(len(spans)))
	if !s.settings.KeepOnly {
		sv.rate.add(now, uint64(len(spans)))
		sv.hasSpans = true
		s.noteMixed(sv)
	}
	sv.setInstance(from.Instance)
	for len(spans) > 0 {
		n := min(len(spans), len(s.hashes))
		s.foldSome(sv, spans[:n], now)
		spans = spans[n:]
	}
	s.settle(sv)
}

// noteMixed counts a service once if its calls count as spans and in call paths. The other services
// share one tree, and each of them may have only one of these.
func (s *Store) noteMixed(sv *service) {
	if sv.hasSpans && sv.hasPaths && !sv.mixed && sv.name != OtherServices {
		sv.mixed = true
		s.counters.MixedServices++
	}
}

// foldSome folds spans for whose hashes there is room. If callees come first it begins with
// the last span, so that most spans find their callers placed.
func (s *Store) foldSome(sv *service, spans []Span, now uint32) {
	s.seen.makeRoomForMany(len(spans), s.settings.MaxPending)
	for i := range spans {
		s.hashes[i] = s.seen.hash(spans[i].key())
	}
	s.seen.warm(s.hashes[:len(spans)])
	if areCalleesFirst(spans) {
		for i := len(spans) - 1; i >= 0; i-- {
			s.room.makeForOne()
			s.fold(sv, &spans[i], s.hashes[i], now)
		}
		return
	}
	for i := range spans {
		s.room.makeForOne()
		s.fold(sv, &spans[i], s.hashes[i], now)
	}
}

// fold folds a span:
//
//  1. Look up the span. A span that arrived before is a duplicate.
//     Otherwise its callees may have arrived, and wait for it. Callees that wait in trees
//     of other services are now known to be at the top there, unless these services have a
//     span of that ID, too.
//  2. Find its caller and the caller's node: the top if it has no caller, and a waiting node
//     if the caller has not arrived.
//  3. Find or make the node of the span below it. Callees that wait for the span are hung there.
//  4. Count the call at the node, or the repeated calls. Its own time is its time without its callees', or 0 if
//     those took longer.
//  5. Reduce the caller's own time by the time of the call.
//  6. Remember the span for callees that arrive later.
//
// If spans are only kept, it skips steps 2 to 5, and remembers the span to find duplicates.
func (s *Store) fold(sv *service, span *Span, hash, now uint32) {
	t := sv.calls
	own, first := s.seen.arrive(t, span, hash, now)
	if !first {
		s.counters.Duplicates++
		return
	}
	function := t.functions.number(span.Function, s.settings.MaxNameBytes)
	t.functions.ref(function)
	t.functions.place(function, span.File, span.Line, s.settings.MaxNameBytes)
	s.kept.keep(sv, span, function, now)
	if s.settings.KeepOnly {
		s.seen.remember(t, span, own, top, 0, hash, now)
		t.functions.unref(function)
		s.counters.UncountedSpans++
		return
	}

	caller, parent := s.seen.place(t, span, own, now)
	took, calls := span.time(), span.count()
	waiting, callees := s.seen.waiting(own)
	n := t.nodeOfCall(waiting, parent, function, span.mark())
	errors := errorsOf(span)
	t.countCalls(n, calls, took, callees, errors)
	if caller != 0 {
		s.seen.reduceCaller(t, caller, parent, took, now)
	}
	s.seen.remember(t, span, own, n, took, hash, now)
	t.functions.unref(function)
	s.counters.Spans++
	sv.countCalls(calls, errors)
}

// FoldSamples folds samples of one service and kind, which is not [Calls]. It copies the
// texts that it keeps.
func (s *Store) FoldSamples(from Origin, kind Kind, samples ...Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	s.expire(now)
	count := uint64(0)
	for i := range samples {
		count += samples[i].Count
	}
	sv := s.services.named(from.Service, count, now)
	sv.countArrival(s.now(), now, 0)
	defer s.settle(sv)
	t := s.services.profile(sv, kind)
	if t == nil {
		s.counters.DroppedSamples += count
		return
	}
	for i := range samples {
		s.room.makeForOne()
		if t.foldSample(&samples[i], s.settings.MaxNameBytes) {
			s.counters.CutSamples += samples[i].Count
		}
	}
	s.counters.Samples += count
}

// SeeThreads counts threads that were sampled.
func (s *Store) SeeThreads(from Origin, threads ...Thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	s.expire(now)
	sv := s.services.named(from.Service, 0, now)
	defer s.settle(sv)
	sv.threads.setInstance(from.Instance)
	for _, t := range threads {
		sv.threads.number(t.ID, t.Name, now)
	}
}

// SeeMissing sets which classes are missing in the calls of a service, if the store has the
// service. The statement stays until the next one, or until the store evicts the service.
func (s *Store) SeeMissing(service string, m Missing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv, ok := s.services.byName[Cut(service, s.settings.MaxNameBytes)]
	m.First = Cut(m.First, maxMissingNames)
	if !ok || m == sv.missing {
		return
	}
	m.First = strings.Clone(m.First)
	sv.missing = m
}

// SeeLeftOut adds calls that their sender left out to those of a service, if the store has the service.
func (s *Store) SeeLeftOut(service string, l LeftOut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sv, ok := s.services.byName[Cut(service, s.settings.MaxNameBytes)]; ok {
		sv.calls.lost.LeftOut.Add(l)
	}
}

// sweepThreads is the interval at which old threads are forgotten, in seconds.
const sweepThreads = 60

// expire forgets spans and threads that are older than the settings allow, and lets
// candidates take the places of services. It does so once in a second.
func (s *Store) expire(now uint32) {
	if now == s.expired {
		return
	}
	s.expired = now
	patience := uint32(s.settings.PendingTimeout.Seconds())
	s.seen.expire(now, patience)
	if now-s.sweptThreads >= sweepThreads {
		s.sweptThreads = now
		for _, sv := range s.services.byName {
			sv.threads.forget(now, patience)
		}
	}
	s.room.compact(isSparseTree)
	s.services.admit(now)
	s.forest.measureAll()
}

// settle measures the trees of a service after folding, and frees memory on request of
// Settings.Hold.
func (s *Store) settle(sv *service) {
	if s.settings.Hold == nil {
		return
	}
	for _, t := range sv.trees() {
		s.forest.measure(t)
	}
	s.hold()
}

// GiveWay frees the memory that Settings.Hold demands.
func (s *Store) GiveWay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings.Hold != nil {
		s.forest.measureAll()
		s.hold()
	}
}

func (s *Store) hold() { s.room.hold(s.otherBytes(), s.second) }

const emptyStoreBytes = 8 << 10

// otherBytes is the memory that cannot be freed.
func (s *Store) otherBytes() int64 { return emptyStoreBytes + s.services.candidates.bytes() }

// Bytes is about the memory of the store.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forest.measureAll()
	return s.otherBytes() + s.room.bytes()
}

// Services describes all services, sorted by name.
func (s *Store) Services() []Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	s.expire(now)
	all := make([]Service, 0, len(s.services.byName))
	for _, sv := range s.services.byName {
		all = append(all, sv.describe(now))
	}
	slices.SortFunc(all, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Reset forgets the counts of a service until now, and reports whether there is such a
// service. Its windows begin again, and its kept spans go. A service without spans that wait
// or are remembered is removed.
func (s *Store) Reset(service string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(s.second())
	sv, ok := s.services.byName[service]
	if ok {
		s.services.reset(sv)
		s.room.compact(isSparseTree)
		s.forest.measureAll()
	}
	return ok
}

// ResetAll resets all services.
func (s *Store) ResetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(s.second())
	for _, sv := range s.services.byName {
		s.services.reset(sv)
	}
	s.room.compact(isSparseTree)
	s.forest.measureAll()
}

// Counters returns a copy of the counters.
func (s *Store) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	counters := s.counters
	counters.DroppedKept, counters.DroppedTraces = s.kept.dropped, s.kept.gone
	return counters
}

// Paths is the number of paths of a tree, with those that wait; 0 if there is no tree.
func (s *Store) Paths(service string, kind Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.services.tree(service, kind); t != nil {
		return t.live
	}
	return 0
}

// Usage returns the current contents.
func (s *Store) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.seen.count(seenWaiting)
	return Usage{
		Services: len(s.services.byName), Nodes: s.forest.used.nodes, NameBytes: s.forest.used.names,
		Waiting: waiting, Remembered: s.seen.total() - waiting,
		Kept: len(s.kept.spans), Windows: s.windows,
	}
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

// Snapshot returns the tree of a service and kind, or false if there is none. Calls that
// wait for their callers are below a node [MissingParent].
func (s *Store) Snapshot(service string, kind Kind) (Snapshot, bool) {
	s.mu.Lock()
	t := s.services.tree(service, kind)
	if t == nil {
		s.mu.Unlock()
		return Snapshot{}, false
	}
	owner := s.forest.owners[t.number]
	snapshot := Snapshot{Service: service, Kind: kind, From: owner.from, To: s.now(), Lost: t.lost, Missing: owner.missing}
	copied := t.copy()
	s.mu.Unlock()
	snapshot.Nodes = snapshotNodes(copied)
	return snapshot, true
}

// Collect collects the calls of a service and kind from now on, for a length of time or
// until the context is done. It then returns the context's error. Other errors are
// [ErrNotThere], [ErrBusy], and that of turn. A call that ends in the window counts as a
// whole, below its callers, which may have arrived before.
//
// Collect makes the snapshot when turn returns, which it calls at the end of the time. So
// turn bounds how many snapshots are made at the same time.
func (s *Store) Collect(ctx context.Context, service string, kind Kind, length time.Duration, turn func(context.Context) error) (Snapshot, error) {
	t, w, err := s.openWindow(service, kind)
	if err != nil {
		return Snapshot{}, err
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		s.closeWindow(t, w)
		return Snapshot{}, ctx.Err()
	}
	s.endWindow(t, w)
	if err := turn(ctx); err != nil {
		s.closeWindow(t, w)
		return Snapshot{}, err
	}
	copied := s.copyAndCloseWindow(t, w)
	showWindow(copied, w.values)
	return Snapshot{Service: service, Kind: kind, From: w.from, To: w.to, Lost: w.lost, Missing: w.missing, Nodes: snapshotNodes(copied)}, nil
}

func (s *Store) openWindow(service string, kind Kind) (*tree, *window, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.services.tree(service, kind)
	switch {
	case t == nil:
		return nil, nil, ErrNotThere
	case s.windows >= s.settings.MaxWindows:
		s.counters.RefusedWindows++
		return nil, nil, ErrBusy
	}
	s.forest.epoch++
	w := newWindow(s.now(), s.forest.epoch, t.lost)
	s.windows++
	t.windows = append(t.windows, w)
	return t, w, nil
}

// endWindow ends the counting in a window.
func (s *Store) endWindow(t *tree, w *window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.to, w.lost, w.missing = s.now(), t.lost.since(w.lost), s.forest.owners[t.number].missing
}

// copyAndCloseWindow copies the tree and removes the window from it.
func (s *Store) copyAndCloseWindow(t *tree, w *window) *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detach(t, w)
	return t.copy()
}

// closeWindow removes a window from its tree.
func (s *Store) closeWindow(t *tree, w *window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detach(t, w)
}

func (s *Store) detach(t *tree, w *window) {
	s.windows--
	t.windows = slices.DeleteFunc(t.windows, func(other *window) bool { return other == w })
}

// Traces summarizes the traces with kept spans of the service, the latest first.
func (s *Store) Traces(service string) []TraceSummary {
	spans, dropped := s.copySummed(service)
	all := summarize(spans, dropped)
	slices.SortFunc(all, func(a, b TraceSummary) int {
		return cmp.Or(b.End.Compare(a.End), slices.Compare(a.ID[:], b.ID[:]))
	})
	return all
}

// copySummed copies the kept spans for summaries, and the number of dropped spans of each
// trace. It returns nothing if there is no such service.
func (s *Store) copySummed(service string) ([]summedSpan, map[TraceID]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv, ok := s.services.byName[service]
	if !ok {
		return nil, nil
	}
	return s.kept.summed(sv.calls.number)
}

// Trace returns the kept spans of a trace, in the order of their starts. If two start at
// the same time, the longer one is first.
func (s *Store) Trace(id TraceID) ([]KeptSpan, bool) {
	spans := s.copyTrace(id)
	slices.SortStableFunc(spans, func(a, b KeptSpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	return spans, len(spans) > 0
}

func (s *Store) copyTrace(id TraceID) []KeptSpan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.ofTrace(id)
}
