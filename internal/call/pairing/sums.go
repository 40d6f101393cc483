// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"iter"

	"github.com/callbraid/callbraid/internal/call/callsum"
)

// sums are the sums of a stream's calls. They know the call paths of open frames.
type sums struct {
	settings *Settings
	names    *names
	// of is nil if calls are not summed.
	of *callsum.Sums
}

func newSums(settings *Settings, n *names) sums {
	s := sums{settings: settings, names: n}
	s.begin()
	return s
}

// begin begins new sums after end.
func (s *sums) begin() {
	if s.settings.Sums != nil {
		s.of = callsum.New(s.settings.Sums)
	}
}

// findPath finds the call path of the lane's frame f, number depth. A frame of a shared lane has
// number 0.
func (s *sums) findPath(l *lane, f *frame, depth int) {
	if depth > 0 {
		f.path = s.of.Callee(l.frames[depth-1].path, f.function)
		return
	}
	s.findLane(l, f)
	f.path = s.of.Callee(l.path, f.function)
}

// findLane finds the path of the lane, which has the name of its frame f.
func (s *sums) findLane(l *lane, f *frame) {
	l.path = s.of.Lane(l.path, l.id, s.names.laneNames[f.name].name)
}

// findPaths finds the call paths of a lane's frames again, after its lowest frames have left.
func (s *sums) findPaths(l *lane) {
	if s.of == nil {
		return
	}
	for i := range l.frames {
		depth := i
		if l.isShared() {
			depth = 0
		}
		s.findPath(l, &l.frames[i], depth)
	}
}

// findForgotten finds the call paths of a lane's frames again, if forgetIdlePaths has forgotten them. It runs before a frame opens
// or ends, so the lanes share out the time that it needs.
func (s *sums) findForgotten(l *lane) {
	if l.forgotten {
		l.forgotten = false
		s.findPaths(l)
		s.nameLane(l)
	}
}

// nameLane gives the path of a lane with frames its latest name. The thread may have another name since its lowest frame.
func (s *sums) nameLane(l *lane) { s.findLane(l, &l.frames[len(l.frames)-1]) }

// count adds a call that ends. The time of a dropped call stays with its caller, except the time of its counted callees.
func (s *sums) count(f, parent *frame, o *outcome) {
	duration := o.end - f.start
	if parent != nil {
		if o.truncated != 0 && s.settings.DropTruncated {
			parent.callees += f.callees
		} else {
			parent.callees += duration
		}
	}
	switch {
	case o.unwound:
		s.of.CountUnwound(f.function, o.exception, f.path, duration, f.callees)
	case o.truncated == 0:
		s.of.CountReturned(f.function, f.path, duration, f.callees)
	case !s.settings.DropTruncated:
		s.of.CountTruncated(f.function, f.path, duration, f.callees)
	}
}

// take returns the growth of the sums since the last increment. The increment is empty without sums.
func (s *sums) take(lanes []lane) callsum.Increment {
	if s.of == nil {
		return callsum.Increment{}
	}
	for _, f := range s.names.functions[s.of.Functions():] {
		s.of.AddFunction(f.name)
	}
	for i := range lanes {
		if l := &lanes[i]; len(l.frames) > 0 && !l.forgotten {
			s.nameLane(l)
		}
	}
	return s.of.Take(s.names.exceptions)
}

// forgetIdlePaths forgets call paths that are not in use, after take.
func (s *sums) forgetIdlePaths(lanes []lane) {
	if s.of == nil || !s.of.ForgetIdlePaths(openPaths(lanes)) {
		return
	}
	for i := range lanes {
		lanes[i].path, lanes[i].forgotten = 0, len(lanes[i].frames) > 0
	}
}

// openPaths are the call paths of all open frames, unless they are forgotten. A path can be there several times.
func openPaths(lanes []lane) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := range lanes {
			if lanes[i].forgotten {
				continue
			}
			for j := range lanes[i].frames {
				if !yield(lanes[i].frames[j].path) {
					return
				}
			}
		}
	}
}

// end writes the last increment to the output.
func (s *sums) end(lanes []lane, out *Output) {
	if s.of == nil {
		return
	}
	if last := s.take(lanes); !last.IsEmpty() {
		out.Sums = append(out.Sums, last)
	}
	s.of.Release()
	s.of = nil
}

// bytes is about the memory of the sums.
func (s *sums) bytes() int {
	if s.of == nil {
		return 0
	}
	return s.of.Bytes()
}
