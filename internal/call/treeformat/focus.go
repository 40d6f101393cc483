// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"github.com/callbraid/callbraid/internal/call/calltree"
)

// LeftOut is the name of the node at the top with everything that [Focus] leaves out. No function
// has that name in output, because its last character is never part of [Printable].
const LeftOut = "(left out)\u2060"

func isLeftOut(n *calltree.Node) bool { return n.Mark == calltree.Folded && n.Function == LeftOut }

// Matcher reports whether a name matches. An error ends the caller's work.
type Matcher func(name string) (bool, error)

// Focus returns the part of the snapshot whose stacks have a function or file that only matches,
// and none that without matches. A nil matcher has no effect. Focus asks for each function and file
// once. The nodes above stay, without values of their own. A node named [LeftOut] has the rest, so
// the totals stay the same. pprof's focus and ignore do the same, with the names of [Profile].
// Focus returns the matchers' error.
func Focus(s calltree.Snapshot, only, without Matcher) (calltree.Snapshot, error) {
	if only == nil && without == nil {
		return s, nil
	}
	f := focus{names: map[function]match{}, only: only, without: without}
	below := make([]match, len(s.Nodes)) // the matches on the node's stack
	stays := make([]bool, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		own, err := f.matchOf(n)
		if err != nil {
			return calltree.Snapshot{}, err
		}
		below[i] = own
		if n.Parent >= 0 {
			above := below[n.Parent]
			below[i].only = below[i].only || above.only
			below[i].without = below[i].without || above.without
		}
		stays[i] = below[i].only && !below[i].without
	}
	s.Nodes = part(s.Nodes, stays)
	return s, nil
}

// match is the result of matching a function with both expressions.
type match struct {
	only, without bool
}

type focus struct {
	names         map[function]match
	only, without Matcher
}

func (f *focus) matchOf(n *calltree.Node) (match, error) {
	key := placeOf(n).function
	if m, ok := f.names[key]; ok {
		return m, nil
	}
	name, file := nameOf(n), Printable(n.File)
	m := match{only: f.only == nil}
	var err error
	if f.only != nil {
		if m.only, err = f.only.either(name, file); err != nil {
			return m, err
		}
	}
	if f.without != nil {
		if m.without, err = f.without.either(name, file); err != nil {
			return m, err
		}
	}
	f.names[key] = m
	return m, nil
}

// either reports whether one of the names matches.
func (m Matcher) either(a, b string) (bool, error) {
	if is, err := m(a); is || err != nil {
		return is, err
	}
	return m(b)
}

// part returns the nodes that stay, those above them without values, and one node for the rest.
func part(nodes []calltree.Node, stays []bool) []calltree.Node {
	needed := make([]bool, len(nodes))
	for i := len(nodes) - 1; i >= 0; i-- {
		needed[i] = needed[i] || stays[i]
		if parent := nodes[i].Parent; needed[i] && parent >= 0 {
			needed[parent] = true
		}
	}
	var out []calltree.Node
	left := calltree.Node{Parent: -1, Function: LeftOut, Mark: calltree.Folded}
	places := make([]int32, len(nodes))
	for i := range nodes {
		n := nodes[i]
		if !stays[i] {
			addTo(&left, &n)
			n.Calls, n.Errors, n.Total, n.Self = 0, 0, 0, 0
		}
		if !needed[i] {
			continue
		}
		if n.Parent >= 0 {
			n.Parent = places[n.Parent]
		}
		places[i] = int32(len(out))
		out = append(out, n)
	}
	if hasValue(&left) {
		out = append(out, left)
	}
	return out
}
