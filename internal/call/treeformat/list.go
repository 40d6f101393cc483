// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// listedPart is the smallest part of the whole, one in so many, that [ListProfile] lists.
const listedPart = 250

// ListProfile is a profile for lists of functions, such as pprof's top. Each function has the flat
// and cumulative value that it has in [Profile], but only the selected value. Its stacks have no
// meaning, so a list needs no time for each path.
//
// It lists functions whose cumulative value is at least a 250th part of the whole (without the node
// [LeftOut]). pprof's own list omits functions below a 200th part. All others are in functions
// named "(smaller paths)" and a number, each below that.
//
// The algorithm puts the flat values of all functions one behind the other, as pieces of a ring.
// The difference between a function's cumulative and flat value is the part of the ring behind its
// own piece. So each point of the ring is a stack: the function of its piece, and the functions
// whose part reaches it. These parts begin all around the ring, so stacks are as long as the
// program's on average.
func ListProfile(s calltree.Snapshot, by Value) *profile.Profile {
	b := newProfileBuilder(s)
	if by.of == nil {
		by.column = len(b.values) - 1
	}
	r := ring{builder: b, column: by.column}
	value := by.function()
	r.lay(functionsOf(s.Nodes, value, weights(s.Nodes, value)))
	r.cut()
	return b.p
}

// ring has the flat values of functions, one behind the other. The first is behind the last.
type ring struct {
	builder *profileBuilder
	column  int
	pieces  []piece
	changes []change
}

// piece is a function's part of the ring.
type piece struct {
	location   *profile.Location
	begin, end int64
}

// change is a point where a function begins or ends to be on the stacks of other pieces.
type change struct {
	at       int64
	location *profile.Location
	begins   bool
}

// lay lays the pieces of listed functions, and then those of the others.
func (r *ring) lay(functions []Function) {
	functions = r.removeLeftOut(functions)
	var whole int64
	for i := range functions {
		whole = add(whole, functions[i].flat)
	}
	least := whole / listedPart
	var rest []int64 // of functions that are not listed, each below the least
	var wide []int   // the listed functions: indexes in functions
	for i, f := range functions {
		switch {
		case f.cumulative == 0:
		case f.cumulative >= least:
			r.append(r.builder.location(&calltree.Node{Function: f.Name}), f.flat)
			wide = append(wide, i)
		case len(rest) == 0 || rest[len(rest)-1]+f.flat >= least:
			rest = append(rest, f.flat)
		default:
			rest[len(rest)-1] += f.flat
		}
	}
	for i, value := range rest {
		r.append(r.builder.location(&calltree.Node{Function: fmt.Sprintf("%s %d", smaller, i+1)}), value)
	}
	for p, i := range wide {
		r.extend(&r.pieces[p], functions[i].cumulative-functions[i].flat)
	}
}

// removeLeftOut makes a sample of the node LeftOut, with a stack of its own, and returns the other
// functions.
func (r *ring) removeLeftOut(functions []Function) []Function {
	return slices.DeleteFunc(functions, func(f Function) bool {
		is := f.Name == LeftOut
		if is {
			r.sample(r.builder.location(&calltree.Node{Function: LeftOut, Mark: calltree.Folded}), nil, f.flat)
		}
		return is
	})
}

// append adds a piece behind the last one.
func (r *ring) append(location *profile.Location, value int64) {
	var begin int64
	if len(r.pieces) > 0 {
		begin = r.pieces[len(r.pieces)-1].end
	}
	r.pieces = append(r.pieces, piece{location, begin, add(begin, value)})
}

// extend puts a function on the stacks of the pieces behind its own, for so much value.
func (r *ring) extend(own *piece, need int64) {
	whole := r.pieces[len(r.pieces)-1].end
	behind := min(need, whole-own.end)
	r.change(own.location, own.end, own.end+behind)
	r.change(own.location, 0, min(need-behind, own.begin))
}

func (r *ring) change(location *profile.Location, from, to int64) {
	if from < to {
		r.changes = append(r.changes, change{from, location, true}, change{to, location, false})
	}
}

// cut makes a sample of each part of the ring that has one stack.
func (r *ring) cut() {
	slices.SortStableFunc(r.changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var others []*profile.Location // on the stacks of the current part
	changes := r.changes
	for _, p := range r.pieces {
		for from := p.begin; from < p.end; {
			for len(changes) > 0 && changes[0].at <= from {
				others = changed(others, changes[0])
				changes = changes[1:]
			}
			to := p.end
			if len(changes) > 0 {
				to = min(to, changes[0].at)
			}
			r.sample(p.location, others, to-from)
			from = to
		}
	}
}

func changed(others []*profile.Location, c change) []*profile.Location {
	if c.begins {
		return append(others, c.location)
	}
	at := slices.Index(others, c.location)
	return slices.Delete(others, at, at+1)
}

func (r *ring) sample(leaf *profile.Location, others []*profile.Location, value int64) {
	values := make([]int64, len(r.builder.values))
	values[r.column] = value
	r.builder.p.Sample = append(r.builder.p.Sample, &profile.Sample{
		Location: append([]*profile.Location{leaf}, others...),
		Value:    values,
	})
}
