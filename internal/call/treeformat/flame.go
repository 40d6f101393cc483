// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"cmp"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/codegroup"
)

// FlameOptions select what a flame graph shows.
type FlameOptions struct {
	// By is the value that the widths of frames show.
	By Value
	// At is the frame that is shown alone, by its ID; empty: all.
	At string
	// Search marks functions; nil: none.
	Search Matcher
	// Pixels is the width of the picture: a path that is narrower than one of them is folded. Frames bounds the number of
	// frames. Both are above 0.
	Pixels, Frames int
}

// ErrNoFrame reports that the tree has no frame of the ID.
var ErrNoFrame = errors.New("the call tree has no such path, or no longer")

// Flame is a flame graph of a part of a call tree, for a browser.
type Flame struct {
	// Functions are those of the frames.
	Functions []FlameFunction `json:"functions"`
	// Frames have their callers in front. At is the place of the frame that is shown alone, or -1. The frames in front of it
	// are its callers.
	Frames []FlameFrame `json:"frames"`
	At     int32        `json:"at"`
	// Whole is the value of everything that is shown.
	Whole int64 `json:"whole"`
	// Paths is the number of paths of the shown part, and Folded how many of these no frame of their own has.
	Paths  int `json:"paths"`
	Folded int `json:"folded"`
	// LeftOut is the value of everything that [Focus] and [ShowFrames] left out. No frame has it.
	LeftOut int64 `json:"leftOut,omitempty"`
	// Groups are the groups of functions, by the value in all of the tree. The last stands for all smaller ones, if there
	// are more than MaxFlameGroups.
	Groups []FlameGroup `json:"groups"`
	// Found is what the search found; nil: there was none.
	Found *FlameFound `json:"found,omitempty"`
}

// FlameFunction is a function, or the name of something that is none.
type FlameFunction struct {
	Name  string `json:"n"`
	Place string `json:"f,omitempty"` // file and line
	Group int32  `json:"g"`           // -1: none
	// Mark is that of something else than complete calls of a function: "truncated", "missing", "folded" or "deep";
	// "small": paths, each of which is narrower than a pixel.
	Mark string `json:"m,omitempty"`
}

// FlameFrame is a frame.
type FlameFrame struct {
	// Caller is the place of the caller's frame, or -1.
	Caller   int32  `json:"p"`
	Function int32  `json:"f"`
	ID       string `json:"i,omitempty"`
	// Paths is how many small paths the frame stands for; 0: it is a path.
	Paths  int    `json:"k,omitempty"`
	Value  int64  `json:"v"`
	Calls  uint64 `json:"c"`
	Errors uint64 `json:"e,omitempty"`
	Total  int64  `json:"t"`
	Self   int64  `json:"s"`
	// Found: the search found the function, or that of a path for which the frame stands.
	Found bool `json:"x,omitempty"`
}

// FlameGroup is a group of functions: see [codegroup.Of].
type FlameGroup struct {
	Name string `json:"n"`
	// Value is that of the functions alone, without their callees.
	Value int64 `json:"v"`
}

// MaxFlameGroups is how many groups have a colour of their own.
const MaxFlameGroups = 12

// FlameFound is what a search found in the shown part.
type FlameFound struct {
	Functions int `json:"functions"`
	Paths     int `json:"paths"`
	// Value is the value of the found paths with all below them.
	Value int64 `json:"value"`
}

// flameKey identifies functions, and flameFunction has everything that is made once for each.
type (
	flameKey struct {
		name, file string
		mark       calltree.Mark
	}
	flameFunction struct {
		name  string
		hash  uint64
		group int32
		found bool
		place int32 // in the output, plus 1; 0: it is not there yet
	}
)

// hash is the same in each process, so that the ID of a path is.
func (k *flameKey) hash() uint64 {
	h := fnv.New64a()
	for _, text := range [...]string{k.name, k.file} { // a hash returns no error
		_, _ = h.Write([]byte(text))
		_, _ = h.Write([]byte{byte(k.mark), 0})
	}
	return h.Sum64()
}

// NewFlame returns the flame graph of a part of the snapshot:
//
//  1. Each function gets a name, a group, and whether the search finds it.
//  2. The paths get their IDs, and the part is found by its ID.
//  3. Paths that are too narrow, or too many, are folded into one frame below their caller.
//
// It fails with ErrNoFrame, or with the error of the search.
func NewFlame(s calltree.Snapshot, o FlameOptions) (*Flame, error) {
	b := flameBuilder{options: o, nodes: s.Nodes, value: o.By.function(), at: -1, flame: Flame{
		At: -1, Frames: []FlameFrame{}, Groups: []FlameGroup{}, Functions: []FlameFunction{{Name: smaller, Group: -1, Mark: "small"}},
	}}
	if last := len(b.nodes) - 1; last >= 0 && isLeftOut(&b.nodes[last]) {
		b.flame.LeftOut = max(b.value(&b.nodes[last]), 0)
		b.nodes = b.nodes[:last]
	}
	b.weights = weights(b.nodes, b.value)
	if err := b.readFunctions(); err != nil {
		return nil, err
	}
	if err := b.findPart(); err != nil {
		return nil, err
	}
	b.rankGroups()
	b.addFrames()
	return &b.flame, nil
}

// flameBuilder is a flame graph that is being built.
type flameBuilder struct {
	options FlameOptions
	nodes   []calltree.Node
	value   func(*calltree.Node) int64
	weights []int64
	// all are the functions, and functions the place of that of each node.
	all       []flameFunction
	functions []int32
	groups    []FlameGroup
	ids       []uint64
	// at is the node that is shown alone, or -1. The shown nodes are those from begin to end.
	at, begin, end int
	flame          Flame
}

// readFunctions reads the functions of all nodes.
func (b *flameBuilder) readFunctions() error {
	known := map[flameKey]int32{}
	groups := map[string]int32{}
	b.functions = make([]int32, len(b.nodes))
	for i := range b.nodes {
		n := &b.nodes[i]
		key := flameKey{n.Function, n.File, n.Mark}
		number, ok := known[key]
		if !ok {
			f := flameFunction{name: nameOf(n), hash: key.hash(), group: -1}
			if isFunction(n) {
				f.group = numberOf(codegroup.Of(n.Function, n.File), groups, &b.groups)
				if search := b.options.Search; search != nil {
					var err error
					if f.found, err = search(f.name); err != nil {
						return err
					}
				}
			}
			number = int32(len(b.all))
			known[key] = number
			b.all = append(b.all, f)
		}
		b.functions[i] = number
		if group := b.all[number].group; group >= 0 {
			b.groups[group].Value = add(b.groups[group].Value, max(b.value(n), 0))
		}
	}
	return nil
}

// isFunction reports whether a node is a function, and does not only stand for others.
func isFunction(n *calltree.Node) bool {
	return n.Mark == calltree.Plain || n.Mark == calltree.Truncated
}

// numberOf returns the number of a group.
func numberOf(name string, numbers map[string]int32, all *[]FlameGroup) int32 {
	name = Name(name)
	number, ok := numbers[name]
	if !ok {
		number = int32(len(*all))
		numbers[name] = number
		*all = append(*all, FlameGroup{Name: name})
	}
	return number
}

// findPart gives each node the ID of its path, and finds the part of the tree to show. Its nodes are without a gap.
func (b *flameBuilder) findPart() error {
	at := uint64(0)
	if b.options.At != "" {
		var err error
		if at, err = strconv.ParseUint(b.options.At, 36, 64); err != nil || at == 0 {
			return ErrNoFrame
		}
	}
	b.ids = make([]uint64, len(b.nodes))
	for i := range b.nodes {
		above := uint64(0)
		if parent := b.nodes[i].Parent; parent >= 0 {
			above = b.ids[parent]
		}
		b.ids[i] = idBelow(above, b.all[b.functions[i]].hash)
		if b.at < 0 && b.ids[i] == at {
			b.at = i
		}
	}
	b.end = len(b.nodes)
	if at == 0 {
		return nil
	}
	if b.at < 0 {
		return ErrNoFrame
	}
	b.begin, b.end = b.at, b.at+1
	for b.end < len(b.nodes) && int(b.nodes[b.end].Parent) >= b.at {
		b.end++
	}
	return nil
}

// idBelow returns the ID of a path, from that of the path above it and the hash of its function. It is never 0.
func idBelow(above, function uint64) uint64 {
	const prime = 0x9e3779b97f4a7c15
	h := (above ^ above>>32) * prime
	h = (h ^ h>>29 ^ function) * prime
	return max(h^h>>32, 1)
}

// rankGroups sorts the groups by their values, and sums up those without a colour.
func (b *flameBuilder) rankGroups() {
	order := make([]int32, len(b.groups))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int {
		return cmp.Or(cmp.Compare(b.groups[y].Value, b.groups[x].Value), strings.Compare(b.groups[x].Name, b.groups[y].Name))
	})
	rank := make([]int32, len(b.groups))
	for place, group := range order {
		g := b.groups[group]
		if len(order) > MaxFlameGroups && place >= MaxFlameGroups {
			place = MaxFlameGroups
			if len(b.flame.Groups) > place {
				b.flame.Groups[place].Value = add(b.flame.Groups[place].Value, g.Value)
			} else {
				b.flame.Groups = append(b.flame.Groups, FlameGroup{Name: otherGroups, Value: g.Value})
			}
		} else {
			b.flame.Groups = append(b.flame.Groups, g)
		}
		rank[group] = int32(place)
	}
	for i := range b.all {
		if f := &b.all[i]; f.group >= 0 {
			f.group = rank[f.group]
		}
	}
}

// otherGroups is the name of the last group, with all that have no colour of their own.
const otherGroups = "(further groups)"

// addFrames adds the callers of the shown part, and its frames.
func (b *flameBuilder) addFrames() {
	var above []int
	if b.at >= 0 {
		for i := b.nodes[b.at].Parent; i >= 0; i = b.nodes[i].Parent {
			above = append(above, int(i))
		}
		b.flame.At = int32(len(above))
		b.flame.Whole = b.weights[b.at]
	} else {
		for i := range b.nodes {
			if b.nodes[i].Parent < 0 {
				b.flame.Whole = add(b.flame.Whole, b.weights[i])
			}
		}
	}
	caller := int32(-1)
	for _, i := range slices.Backward(above) {
		caller = b.addFrame(i, caller)
		b.flame.Frames[caller].Value = b.flame.Whole
	}
	part, depths := b.weights[b.begin:b.end], depthsOf(b.nodes)[b.begin:b.end]
	wide := NewWidest(part, depths, max(b.flame.Whole/int64(b.options.Pixels), 1), b.options.Frames)
	b.flame.Paths = b.end - b.begin
	if b.options.Search != nil {
		b.flame.Found = &FlameFound{}
		b.count(b.flame.Found)
	}
	places := make([]int32, b.end-b.begin) // the frame of each shown node, or -2 minus that of the one that stands for it
	small := map[int32]int32{}             // frames that stand for others, by their caller's place
	for i := b.begin; i < b.end; i++ {
		n := &b.nodes[i]
		to := caller
		if int(n.Parent) >= b.begin && i > b.begin {
			to = places[int(n.Parent)-b.begin]
		}
		if wide.Selects(part[i-b.begin], depths[i-b.begin]) && to >= -1 {
			places[i-b.begin] = b.addFrame(i, to)
			continue
		}
		places[i-b.begin] = -2 - b.fold(i, to, small)
	}
}

// addFrame adds the frame of a node, and returns its place.
func (b *flameBuilder) addFrame(i int, caller int32) int32 {
	n, f := &b.nodes[i], &b.all[b.functions[i]]
	if f.place == 0 {
		b.flame.Functions = append(b.flame.Functions, flameFunctionOf(n, f))
		f.place = int32(len(b.flame.Functions))
	}
	b.flame.Frames = append(b.flame.Frames, FlameFrame{
		Caller: caller, Function: f.place - 1, ID: strconv.FormatUint(b.ids[i], 36), Found: f.found,
		Value: b.weights[i], Calls: n.Calls, Errors: n.Errors, Total: n.Total, Self: n.Self,
	})
	return int32(len(b.flame.Frames) - 1)
}

func flameFunctionOf(n *calltree.Node, f *flameFunction) FlameFunction {
	function := FlameFunction{Name: f.name, Group: f.group, Mark: marks[n.Mark]}
	if n.File != "" {
		function.Place = Printable(n.File)
		if n.Line != 0 {
			function.Place += ":" + strconv.FormatInt(n.Line, 10)
		}
	}
	return function
}

var marks = map[calltree.Mark]string{
	calltree.Truncated: "truncated", calltree.MissingParent: "missing", calltree.Folded: "folded", calltree.Deep: "deep",
}

// fold adds a node to the frame that stands for all small paths below a caller, and returns its place. The caller is that
// frame already if it is below -1.
func (b *flameBuilder) fold(i int, caller int32, small map[int32]int32) int32 {
	place := -2 - caller
	isTopmost := caller >= -1
	if isTopmost {
		var ok bool
		if place, ok = small[caller]; !ok {
			place = int32(len(b.flame.Frames))
			small[caller] = place
			b.flame.Frames = append(b.flame.Frames, FlameFrame{Caller: caller})
		}
	}
	n, frame := &b.nodes[i], &b.flame.Frames[place]
	if isTopmost {
		frame.Value = add(frame.Value, b.weights[i])
		frame.Total = addSigned(frame.Total, n.Total)
	}
	frame.Paths++
	frame.Calls += n.Calls
	frame.Errors += n.Errors
	frame.Self = addSigned(frame.Self, n.Self)
	frame.Found = frame.Found || b.all[b.functions[i]].found
	b.flame.Folded++
	return place
}

// count counts what the search found. A path below a found one does not count its value again.
func (b *flameBuilder) count(found *FlameFound) {
	functions := make([]bool, len(b.all))
	below := make([]bool, b.end-b.begin) // whether the node, or one above it, is found
	for i := b.begin; i < b.end; i++ {
		is := b.all[b.functions[i]].found
		above := int(b.nodes[i].Parent) - b.begin
		inside := i > b.begin && above >= 0 && below[above]
		if below[i-b.begin] = is || inside; !is {
			continue
		}
		found.Paths++
		if !inside {
			found.Value = add(found.Value, b.weights[i])
		}
		if number := b.functions[i]; !functions[number] {
			functions[number] = true
			found.Functions++
		}
	}
}
