// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Store has the trees of all services. It can be used by several goroutines at once; a
// reader holds it for as long as copying takes, and does the rest by itself.
type Store struct {
	settings Settings
	now      func() time.Time
	start    time.Time

	mu       sync.Mutex
	services map[string]*service
	// trees are those of all services by number; nil: the number is free.
	trees  []*tree
	used   usage
	memory memory
	// candidates are services that have no place of their own yet.
	candidates candidates
	seen       seen
	kept       keptSpans
	counters   Counters
	// expired is the second in which was looked for what waits for too long.
	expired uint32
	// sweptThreads is the second in which was looked for threads of which nothing came for long.
	sweptThreads uint32
	// searched is the second in which a silent service was looked for in vain.
	searched uint32
	// windows and threads are how many there are.
	windows, threads int
	// epoch is how often it was begun to count anew: by a reset, or for a window.
	epoch uint32
	// lastCaller is the span that was looked up last as a caller, if it is still seen.
	lastCaller uint32
	// hashes, of spans that are folded together, and order are memory that is used again.
	hashes [512]uint32
	order  []uint32
}

// NewStore makes a store that is empty.
func NewStore(settings Settings) *Store {
	s := &Store{settings: settings, now: settings.Now, services: map[string]*service{}, seen: newSeen()}
	if s.now == nil {
		s.now = time.Now
	}
	s.start = s.now()
	s.kept = newKeptSpans(settings.MaxKeptSpans, s.releaseKept)
	return s
}

// second is how many seconds the store is there.
func (s *Store) second() uint32 { return uint32(max(0, s.now().Sub(s.start)) / time.Second) }

// service gives the service of a name, of which so much came.
func (s *Store) service(name string, came uint64) *service {
	if sv, ok := s.services[name]; ok {
		return sv
	}
	name = Cut(name, s.settings.MaxNameBytes)
	if sv, ok := s.services[name]; ok {
		return sv
	}
	for len(s.services) >= s.settings.MaxServices && s.forgetSilent() {
	}
	if len(s.services) >= s.settings.MaxServices {
		s.counters.OtherServices += came
		s.candidates.see(name, s.second(), max(1, came), s.settings.MaxServices)
		return s.other()
	}
	return s.begin(name)
}

// other is the service of those that have no place of their own.
func (s *Store) other() *service {
	if sv := s.services[OtherServices]; sv != nil {
		return sv
	}
	return s.begin(OtherServices)
}

// begin makes a service of a name that there is none of.
func (s *Store) begin(name string) *service {
	sv := &service{name: strings.Clone(name), from: s.now(), last: s.now(), profiles: map[Kind]*tree{}, threads: newThreads(&s.threads)}
	sv.calls = s.plant(sv)
	s.services[sv.name] = sv
	return sv
}

// forgetSilent forgets the service that is silent for longest of those that nothing needs:
// without a window, and of which nothing waits or is remembered; if it is for longer than
// PendingTimeout. It looks for one once a second.
func (s *Store) forgetSilent() bool {
	now := s.second()
	s.expire(now)
	if s.searched == now {
		return false
	}
	needed := s.seen.trees(len(s.trees))
	var silent *service
	for _, sv := range s.services {
		if !needed[sv.calls.number] && !sv.isWatched() && (silent == nil || sv.last.Before(silent.last)) {
			silent = sv
		}
	}
	if silent != nil && s.now().Sub(silent.last) > s.settings.PendingTimeout {
		if s.reset(silent); s.services[silent.name] == nil {
			s.counters.SilentServices++
			return true
		}
	}
	s.searched = now
	return false
}

// plant makes a tree of a service.
func (s *Store) plant(sv *service) *tree {
	t := newTree(&s.used)
	t.owner = sv
	number := slices.Index(s.trees, nil)
	if number < 0 {
		number = len(s.trees)
		s.trees = append(s.trees, nil)
	}
	t.number = uint32(number)
	s.trees[number] = t
	return t
}

// tree is the tree of a service and kind, or nil.
func (s *Store) tree(service string, kind Kind) *tree {
	sv, ok := s.services[service]
	switch {
	case !ok:
		return nil
	case kind == Calls:
		return sv.calls
	default:
		return sv.profiles[kind]
	}
}

// Services tells of all services, sorted by name.
func (s *Store) Services() []Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	s.expire(now)
	all := make([]Service, 0, len(s.services))
	for _, sv := range s.services {
		all = append(all, sv.tell(now))
	}
	slices.SortFunc(all, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Reset forgets what was counted of a service until now, and reports whether there is such
// a service. Its windows begin anew, and of its spans none is kept. A service of which
// nothing waits or is remembered any more is gone.
func (s *Store) Reset(service string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(s.second())
	sv, ok := s.services[service]
	if ok {
		s.reset(sv)
		s.compact()
		s.measureAll()
	}
	return ok
}

// ResetAll resets all services.
func (s *Store) ResetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(s.second())
	for _, sv := range s.services {
		s.reset(sv)
	}
	s.compact()
	s.measureAll()
}

// reset leaves calls that wait, or are remembered, their places and times, so that the own
// time of their callers is right.
func (s *Store) reset(sv *service) {
	sv.from, sv.count, sv.errors = s.now(), 0, 0
	s.epoch++
	s.kept.dropOf(sv.calls.number)
	sv.begin("")
	idle := true
	for _, t := range sv.trees() {
		t.clear(sv.from, s.epoch)
		idle = idle && t.isIdle()
	}
	if !idle {
		return
	}
	for _, t := range sv.trees() {
		s.trees[t.number] = nil
		s.memory.trees -= t.measured
	}
	s.threads -= sv.threads.count()
	delete(s.services, sv.name)
}

// clear takes all values from the nodes, and frees those that nothing needs.
func (t *tree) clear(now time.Time, epoch uint32) {
	t.epoch, t.lost = epoch, Lost{}
	for i := range t.nodes {
		t.nodes[i].values = values{}
	}
	for _, w := range t.windows {
		w.reset(now, epoch, t.lost)
	}
	for i := range t.nodes {
		t.prune(uint32(i))
	}
}

// isIdle reports whether nothing of the tree is needed.
func (t *tree) isIdle() bool {
	return t.live == 0 && t.functions.byName.used == 0 && len(t.windows) == 0
}
