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

// listedPart is how small a part of the whole, one in so many, [ListProfile] tells of.
const listedPart = 250

// ListProfile is a profile for lists of functions, such as pprof's top: each function has
// the flat and cumulative value that it has in [Profile], but only the value that is asked
// for, and stacks say nothing. So a list needs no time for each path.
//
// It tells of functions whose cumulative value is at least a 250th part of the whole
// (without what [Focus] left out); pprof's own list leaves out what is below a 200th part.
// All others are in functions named "(smaller paths)" and a number, each below that.
//
// The profile is made so: the flat values of all functions are laid one behind the other,
// as pieces of a ring. What a function needs beside its own piece, to have its cumulative
// value, is what follows its piece on the ring. So each point of the ring is a stack: of
// the function whose piece it is, and those whose need reaches there. As needs begin all
// around the ring, stacks are as long as those of the program are on average.
func ListProfile(s calltree.Snapshot, by Value) *profile.Profile {
	b := newProfileBuilder(s)
	if by.of == nil {
		by.column = len(b.values) - 1
	}
	r := ring{builder: b, column: by.column}
	r.lay(functionsBy(s.Nodes, by))
	r.cut()
	return b.p
}

// ring is the flat values of functions, one behind the other; behind the last is the first.
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

// change is where a function begins, or ends, to be on the stacks of other pieces.
type change struct {
	at       int64
	location *profile.Location
	begins   bool
}

// lay lays the functions that are told of, and then what there is of others.
func (r *ring) lay(functions []Function) {
	functions = r.putAside(functions)
	var whole int64
	for i := range functions {
		whole = add(whole, functions[i].flat)
	}
	least := whole / listedPart
	var rest []int64 // of what is not told of, each below the least
	var wide []int   // the functions that are told of: indexes in functions
	for i, f := range functions {
		switch {
		case f.cumulative == 0:
		case f.cumulative >= least:
			r.put(r.builder.location(&calltree.Node{Function: f.Name}), f.flat)
			wide = append(wide, i)
		case len(rest) == 0 || rest[len(rest)-1]+f.flat >= least:
			rest = append(rest, f.flat)
		default:
			rest[len(rest)-1] += f.flat
		}
	}
	for i, value := range rest {
		r.put(r.builder.location(&calltree.Node{Function: fmt.Sprintf("%s %d", smaller, i+1)}), value)
	}
	for p, i := range wide {
		r.give(&r.pieces[p], functions[i].cumulative-functions[i].flat)
	}
}

// putAside makes a sample of its own of what was left out: it is to be left out again,
// and alone. It gives the other functions.
func (r *ring) putAside(functions []Function) []Function {
	return slices.DeleteFunc(functions, func(f Function) bool {
		is := f.Name == LeftOut
		if is {
			r.sample(r.builder.location(&calltree.Node{Function: LeftOut, Mark: calltree.Folded}), nil, f.flat)
		}
		return is
	})
}

// put puts a piece behind the last one.
func (r *ring) put(location *profile.Location, value int64) {
	var begin int64
	if len(r.pieces) > 0 {
		begin = r.pieces[len(r.pieces)-1].end
	}
	r.pieces = append(r.pieces, piece{location, begin, add(begin, value)})
}

// give gives a function what it needs of what follows its own piece.
func (r *ring) give(own *piece, need int64) {
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
	var others []*profile.Location // who got the part at hand
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
