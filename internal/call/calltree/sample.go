// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// Sample is a stack, and what was found of it.
type Sample struct {
	// Frames are from the outermost on.
	Frames []Frame
	// IsCut says that there were more, above the first.
	IsCut bool
	// Count is how many samples there were, and Value what they were of, all together.
	Count uint64
	Value int64
}

// Thread is a thread that was sampled.
type Thread struct {
	ID   int64
	Name string
}

// Frame is a place in a stack.
type Frame struct {
	Function, File string
	Line           int64
}

// FoldSamples folds samples of one service and kind, which is not [Calls]. Texts are copied
// where they are kept.
func (s *Store) FoldSamples(from Origin, kind Kind, samples ...Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	s.expire(now)
	count := uint64(0)
	for i := range samples {
		count += samples[i].Count
	}
	sv := s.service(from.Service, count)
	sv.seenAt(s.now(), now, 0)
	defer s.settle(sv)
	t := s.profile(sv, kind)
	if t == nil {
		s.counters.DroppedSamples += count
		return
	}
	for i := range samples {
		s.makeRoom()
		s.foldSample(t, &samples[i])
	}
	s.counters.Samples += count
}

// SeeThreads counts threads that samples are of.
func (s *Store) SeeThreads(from Origin, threads ...Thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	s.expire(now)
	sv := s.service(from.Service, 0)
	defer s.settle(sv)
	sv.threads.begin(from.Instance)
	for _, t := range threads {
		sv.threads.number(t.ID, t.Name, now)
	}
}

// profile is the tree of a kind, which is new if it wasn't there, or nil where there are
// too many.
func (s *Store) profile(sv *service, kind Kind) *tree {
	most := s.settings.MaxNameBytes
	kind = Kind{Type: Cut(kind.Type, most), Unit: Cut(kind.Unit, most)}
	t := sv.profiles[kind]
	if t == nil && len(sv.profiles) < maxKinds {
		t = s.plant(sv)
		sv.profiles[kind.clone()] = t
	}
	return t
}

// foldSample adds a sample to each path that leads to where it was taken.
func (s *Store) foldSample(t *tree, sample *Sample) {
	frames, isCut, most := sample.Frames, sample.IsCut, s.settings.MaxNameBytes
	if len(frames) > maxFrames {
		frames, isCut = frames[len(frames)-maxFrames:], true
	}
	n := uint32(top)
	if isCut || len(frames) == 0 {
		n = t.child(top, labelMissing)
		s.counters.CutSamples += sample.Count
	}
	for _, f := range frames {
		function := t.functions.number(f.Function, most)
		t.functions.place(function, f.File, f.Line, most)
		n = t.child(n, newLabel(function, Plain))
		t.add(n, &values{total: sample.Value})
	}
	t.add(n, &values{calls: sample.Count, self: sample.Value})
}
