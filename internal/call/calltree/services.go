// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"slices"
	"strings"
	"time"
)

// services are the services of a store by name. Their number is bounded. Others share the
// service [OtherServices], and are candidates for a place.
type services struct {
	settings *Settings
	now      func() time.Time
	forest   *forest
	seen     *seen
	kept     *keptSpans

	byName     map[string]*service
	candidates candidates
	// threads is the number of threads of all services.
	threads int
	// searched is the last second in which no service was silent for long enough.
	searched uint32
}

func newServices(settings *Settings, now func() time.Time, f *forest, s *seen, kept *keptSpans) services {
	return services{settings: settings, now: now, forest: f, seen: s, kept: kept, byName: map[string]*service{}}
}

// named returns the service of a name, of which so many items arrived now, a second.
func (s *services) named(name string, items uint64, now uint32) *service {
	if sv, ok := s.byName[name]; ok {
		return sv
	}
	name = Cut(name, s.settings.MaxNameBytes)
	if sv, ok := s.byName[name]; ok {
		return sv
	}
	for len(s.byName) >= s.settings.MaxServices && s.forgetSilent(now) {
	}
	if len(s.byName) >= s.settings.MaxServices {
		s.forest.counters.OtherServices += items
		s.candidates.see(name, now, max(1, items), s.settings.MaxServices)
		return s.other()
	}
	return s.create(name)
}

// other is the service of all that have no place of their own.
func (s *services) other() *service {
	if sv := s.byName[OtherServices]; sv != nil {
		return sv
	}
	return s.create(OtherServices)
}

// create makes a service of a new name.
func (s *services) create(name string) *service {
	sv := &service{name: strings.Clone(name), from: s.now(), last: s.now(), profiles: map[Kind]*tree{}, threads: newThreads(&s.threads)}
	sv.calls = s.forest.plant(sv)
	s.byName[sv.name] = sv
	return sv
}

// tree is the tree of a service and kind, or nil.
func (s *services) tree(service string, kind Kind) *tree {
	sv, ok := s.byName[service]
	switch {
	case !ok:
		return nil
	case kind == Calls:
		return sv.calls
	default:
		return sv.profiles[kind]
	}
}

// profile is the tree of a kind, which it makes if there is none. It is nil if the service
// has too many.
func (s *services) profile(sv *service, kind Kind) *tree {
	most := s.settings.MaxNameBytes
	kind = Kind{Type: Cut(kind.Type, most), Unit: Cut(kind.Unit, most)}
	t := sv.profiles[kind]
	if t == nil && len(sv.profiles) < maxKinds {
		t = s.forest.plant(sv)
		sv.profiles[kind.clone()] = t
	}
	return t
}

// forgetSilent forgets the service that has been silent longest, if that is longer than
// PendingTimeout. It must have no window, and no spans that wait or are remembered. After a
// search without a result, it searches again in the next second.
func (s *services) forgetSilent(now uint32) bool {
	if s.searched == now {
		return false
	}
	needed := s.seen.trees(len(s.forest.trees))
	var silent *service
	for _, sv := range s.byName {
		if !needed[sv.calls.number] && !sv.isWatched() && (silent == nil || sv.last.Before(silent.last)) {
			silent = sv
		}
	}
	if silent != nil && s.now().Sub(silent.last) > s.settings.PendingTimeout {
		if s.reset(silent); s.byName[silent.name] == nil {
			s.forest.counters.SilentServices++
			return true
		}
	}
	s.searched = now
	return false
}

// reset forgets the counts of a service. Calls that wait or are remembered keep their places
// and times, so that the own times of their callers stay right. It removes a service that
// nothing needs.
func (s *services) reset(sv *service) {
	sv.from, sv.count, sv.errors = s.now(), 0, 0
	sv.hasSpans, sv.hasPaths, sv.mixed = false, false, false
	s.forest.epoch++
	s.kept.dropOf(sv.calls.number)
	sv.setInstance("")
	idle := true
	for _, t := range sv.trees() {
		t.clear(sv.from, s.forest.epoch)
		s.forest.identify(t)
		idle = idle && t.isIdle()
	}
	if !idle {
		return
	}
	for _, t := range sv.trees() {
		s.forest.remove(t)
	}
	s.threads -= sv.threads.count()
	delete(s.byName, sv.name)
}

// admit lets candidates take the places of services that have shown less:
//
//  1. It compares the candidate that has shown most with the service that has shown least,
//     then the next pair, as long as the candidate has shown more.
//  2. It forgets these services' calls that wait or are remembered, and adds their trees to
//     that of the other services.
//  3. The candidates begin with empty trees. Their earlier calls are in the other tree.
//
// It is called at most once in a second. A service with a window stays.
func (s *services) admit(now uint32) {
	if !s.candidates.seen {
		return
	}
	s.candidates.seen = false
	best, weakest := s.candidates.best(now), s.weakest()
	leaving := map[uint32]bool{}
	number := 0
	for number < min(len(best), len(weakest)) && best[number].shown.exceeds(&weakest[number].shown) {
		leaving[weakest[number].calls.number] = true
		number++
	}
	if number == 0 {
		return
	}
	s.seen.forgetOf(leaving)
	for i, sv := range weakest[:number] {
		s.join(sv, s.other())
		if s.reset(sv); s.byName[sv.name] != nil {
			continue // something needs it
		}
		s.forest.counters.YieldedServices++
		s.create(best[i].name).shown = best[i].shown
		s.candidates.drop(best[i])
	}
}

// weakest are the services that can leave their places. The one that has shown least is
// first.
func (s *services) weakest() (all []*service) {
	for _, sv := range s.byName {
		if sv.name != OtherServices && !sv.isWatched() {
			all = append(all, sv)
		}
	}
	slices.SortFunc(all, func(a, b *service) int { return a.shown.compare(&b.shown) })
	return all
}

// join adds the counts of a service to another. Nothing waits in its trees.
func (s *services) join(from, into *service) {
	into.count += from.count
	into.errors += from.errors
	into.called = into.called || from.called
	s.forest.join(from.calls, into.calls, s.settings.MaxNameBytes, s.settings.Periods)
	for kind, t := range from.profiles {
		if other := s.profile(into, kind); other != nil {
			s.forest.join(t, other, s.settings.MaxNameBytes, s.settings.Periods)
		}
	}
}
