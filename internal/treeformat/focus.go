// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"regexp"

	"github.com/callbraid/callbraid/internal/calltree"
)

// LeftOut is the name of the node that stands at the top for all that [Focus] leaves out.
const LeftOut = "(left out)"

// Focus returns the part of the snapshot whose stacks have a function, or a file, that
// only matches and none that without matches; a nil expression says nothing. Nodes above
// stay, without values of their own, and a node named [LeftOut] has what is left out, so
// that the whole is known. That is what pprof does by focus and ignore, with the names of
// [Profile].
func Focus(s calltree.Snapshot, only, without *regexp.Regexp) calltree.Snapshot {
	if only == nil && without == nil {
		return s
	}
	f := focus{names: map[function]match{}, only: only, without: without}
	below := make([]match, len(s.Nodes)) // what matches on the node's stack
	stays := make([]bool, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		below[i] = f.matchOf(n)
		if n.Parent >= 0 {
			above := below[n.Parent]
			below[i].only = below[i].only || above.only
			below[i].without = below[i].without || above.without
		}
		stays[i] = below[i].only && !below[i].without
	}
	s.Nodes = part(s.Nodes, stays)
	return s
}

// match says which of the expressions match a function.
type match struct {
	only, without bool
}

type focus struct {
	names         map[function]match
	only, without *regexp.Regexp
}

func (f *focus) matchOf(n *calltree.Node) match {
	key := placeOf(n).function
	m, ok := f.names[key]
	if !ok {
		name, file := functionName(n.Function, n.Mark), Printable(n.File)
		m = match{
			only:    f.only == nil || f.only.MatchString(name) || f.only.MatchString(file),
			without: f.without != nil && (f.without.MatchString(name) || f.without.MatchString(file)),
		}
		f.names[key] = m
	}
	return m
}

// part gives the nodes that stay, without values those above them, and the rest in one.
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
