// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"github.com/callbraid/callbraid/internal/call/calltree"
)

// Frames says which frames of stacks are shown, by the function's name or its file. A nil
// matcher says nothing.
type Frames struct {
	// Hide hides those that match, and Show those that don't.
	Hide, Show Matcher
	// From hides those above the first that matches and is not hidden otherwise.
	From Matcher
}

// ShowFrames returns the snapshot with the frames that are shown. What ended in one that is
// not has ended in the one above; if none is above it is in the node [LeftOut]. That is what
// pprof does by hide, show and show_from. Each function and file is asked for once. It fails
// with the matchers' error.
func ShowFrames(s calltree.Snapshot, which Frames) (calltree.Snapshot, error) {
	if which.Hide == nil && which.Show == nil && which.From == nil {
		return s, nil
	}
	v := visibility{Frames: which, known: map[function]frameVisibility{}}
	left := calltree.Node{Parent: -1, Function: LeftOut, Mark: calltree.Folded}
	shown := make([]int32, len(s.Nodes)) // the node itself in out, or that above it; -1: there is none
	out := make([]calltree.Node, 0, len(s.Nodes))
	for i := range s.Nodes {
		n := s.Nodes[i]
		if isLeftOut(&n) {
			addTo(&left, &n)
			continue // nothing is below it
		}
		above := int32(-1)
		if n.Parent >= 0 {
			above = shown[n.Parent]
		}
		f, err := v.of(&n)
		switch {
		case err != nil:
			return calltree.Snapshot{}, err
		case f.shown && (f.first || above >= 0):
			shown[i] = int32(len(out))
			n.Parent = above
			out = append(out, n)
		case above >= 0:
			shown[i] = above
			addOwn(&out[above], &n)
		default:
			shown[i] = -1
			addTo(&left, &n)
		}
	}
	if hasValue(&left) {
		out = append(out, left)
	}
	s.Nodes = out
	return s, nil
}

// addOwn adds what ended in a node to one above it, whose total has it already.
func addOwn(to, n *calltree.Node) {
	to.Calls += n.Calls
	to.Errors += n.Errors
	to.Self = addSigned(to.Self, n.Self)
}

// visibility has what is known of functions.
type visibility struct {
	Frames
	known map[function]frameVisibility
}

// frameVisibility says whether frames of a function are shown, and can be the first.
type frameVisibility struct {
	shown, first bool
}

func (v *visibility) of(n *calltree.Node) (f frameVisibility, err error) {
	key := placeOf(n).function
	f, ok := v.known[key]
	if ok {
		return f, nil
	}
	name, file := nameOf(n), Printable(n.File)
	hidden, err := v.Hide.says(false, name, file)
	if err != nil {
		return f, err
	}
	if f.shown, err = v.Show.says(true, name, file); err != nil {
		return f, err
	}
	f.shown = f.shown && !hidden
	f.first, err = v.From.says(true, name, file)
	v.known[key] = f
	return f, err
}

// says tells whether one of the names matches, or what is so where there is no matcher.
func (m Matcher) says(otherwise bool, name, file string) (bool, error) {
	if m == nil {
		return otherwise, nil
	}
	return m.either(name, file)
}
