// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"github.com/callbraid/callbraid/internal/call/calltree"
)

// Frames selects the frames of stacks by the function's name or its file. A nil matcher has no
// effect.
type Frames struct {
	// Hide hides frames that match, and Show those that do not match.
	Hide, Show Matcher
	// From hides the frames above the first one that matches and is not hidden otherwise.
	From Matcher
}

// ShowFrames returns the snapshot with the selected frames. The values of a hidden frame are added
// to the shown frame above it, or to the node [LeftOut] if there is none. pprof's hide, show and
// show_from do the same. ShowFrames asks for each function and file once. It returns the matchers'
// error.
func ShowFrames(s calltree.Snapshot, which Frames) (calltree.Snapshot, error) {
	if which.Hide == nil && which.Show == nil && which.From == nil {
		return s, nil
	}
	v := visibility{Frames: which, known: map[function]frameVisibility{}}
	left := calltree.Node{Parent: -1, Function: LeftOut, Mark: calltree.Folded}
	shown := make([]int32, len(s.Nodes)) // the node's place in out, or that of the node above it; -1: none
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

// addOwn adds the own values of a node to one above it, whose total includes them already.
func addOwn(to, n *calltree.Node) {
	to.Calls += n.Calls
	to.Errors += n.Errors
	to.Self = addSigned(to.Self, n.Self)
}

// visibility has the results for known functions.
type visibility struct {
	Frames
	known map[function]frameVisibility
}

// frameVisibility is the selection of a function: whether its frames are shown, and whether they
// can be the first.
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
	hidden, err := v.Hide.matches(false, name, file)
	if err != nil {
		return f, err
	}
	if f.shown, err = v.Show.matches(true, name, file); err != nil {
		return f, err
	}
	f.shown = f.shown && !hidden
	f.first, err = v.From.matches(true, name, file)
	v.known[key] = f
	return f, err
}

// matches reports whether one of the names matches. Without a matcher the result is otherwise.
func (m Matcher) matches(otherwise bool, name, file string) (bool, error) {
	if m == nil {
		return otherwise, nil
	}
	return m.either(name, file)
}
