// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pathprofiles

import (
	"maps"
	"math"
	"slices"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/origin"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/keytable"
)

const (
	// maxFrames bounds the frames of a stack, as flame_graph does (calltree.MaxDepth). Profiles of
	// an unbounded recursion would have sizes in proportion to the square of its depth.
	maxFrames = 998

	// furtherPaths is the name of the frame that stands for paths without room, and deeperCalls that
	// of the frame for all calls below maxFrames.
	furtherPaths = "(further paths)"
	deeperCalls  = "(deeper calls)"
	// noFunction is the name of functions without a name. It is the one that flame_graph shows.
	noFunction = "(unknown)"
)

// The first functions stand for no function, and for calls whose own paths are unknown. Such a
// frame has no callees.
const (
	functionNone uint32 = iota
	functionFurther
	functionDeeper
	firstFunction
)

// fixedTexts are texts of every growth, by the constants below.
var fixedTexts = [...]string{
	textNone: "", textCalls: "calls", textCount: "count", textErrors: "errors", textWall: "wall", textNanoseconds: "nanoseconds",
	textCallPaths: "callbraid.call_paths", textTruncated: "callbraid.truncated", textThreadID: "thread.id", textThreadName: "thread.name",
}

const (
	textNone uint32 = iota
	textCalls
	textCount
	textErrors
	textWall
	textNanoseconds
	textCallPaths
	textTruncated
	textThreadID
	textThreadName
)

// Settings are the settings of profiles.
type Settings struct {
	// MaxPaths bounds the paths of all origins in an interval, and the samples, each by itself. An origin
	// makes at most half of those that all others leave. The rest is summed in a frame "(further
	// paths)" of its origin. It also bounds the origins. Those without room share one without attributes.
	MaxPaths int
	// MaxBytes bounds the memory of a growth; 0: there is no bound. An origin has at most half of the
	// memory that all others leave. Paths, samples, threads and origins without room count as those
	// beyond MaxPaths.
	MaxBytes int
	// MaxMessageBytes bounds a message as protobuf, unless a single stack needs more.
	MaxMessageBytes int
	// Folded receives the numbers of calls that were summed without their path, thread or origin, because of
	// MaxPaths, also by package callsum, and because of MaxBytes. It may be nil.
	Folded func(paths, bytes uint64)
	// NewID returns a random ID of a profile.
	NewID func() [16]byte
}

// bound is a bound of the settings.
type bound uint32

const (
	noBound bound = iota
	maxPaths
	maxBytes
	bounds
)

// Growth is the growth of call paths in one interval.
type Growth struct {
	settings Settings
	// added are increments whose paths have no nodes yet, and addedBytes is about their memory.
	added      []increment
	addedBytes int
	// counted has the last increment of each origin in added. addedBytes contains its names and paths.
	counted map[*origin.Origin]*callsum.Increment
	// texts are all texts, and textAt their indexes. The first text is empty.
	texts  []string
	textAt map[string]uint32
	// functions are all functions, and functionAt the indexes of those from firstFunction on.
	functions  []function
	functionAt map[callevent.Function]uint32
	lanes      []lane
	laneAt     map[lane]uint32
	// nodes are the paths of all origins. A caller stands before its callees. The first node is the
	// top, which is no call. nodeAt has their indexes.
	nodes  []node
	nodeAt keytable.Table
	// further is the index of the node for paths without room; 0: there is none.
	further uint32
	// origins are in the order of their first growth.
	origins []*samples
	byKey   map[origin.Key]*samples
	unnamed *origin.Origin
	// samples is the number of samples of all origins.
	samples int
	// folded are the calls without room since the last merge, by bound.
	folded [bounds]uint64
	// bytes is about the memory beside the slices and maps.
	bytes int
	// places, labels and unknown are memory to use again. places has an entry for each path of an increment, and labels one
	// for each function. Entries of an increment have its number. merges is the number of increments.
	places  []place
	labels  []label
	unknown []uint32
	merges  uint32
}

// increment is the growth of the paths of a stream.
type increment struct {
	origin *origin.Origin
	*callsum.Increment
}

// function is a function with the indexes of its texts.
type function struct{ name, file, line uint32 }

// lane is a thread. The first one has neither a number nor a name.
type lane struct {
	id       int64
	isThread bool
	name     string
}

// node is a function below the node of its caller.
type node struct {
	parent, function uint32
	// owner is the number of the origin that first had a plain sample (sample.isPlain) of the node; 0: none had one. sample
	// is the number of that sample. Mostly a node has only this sample, and to read it here is faster than a look-up in a table.
	owner, sample uint32
}

// samples are the samples of one origin.
type samples struct {
	origin *origin.Origin
	// number is that of the origin: its index in Growth.origins plus 1.
	number uint32
	all    []sample
	// at has the numbers of all samples that are not in their node, by their keys. A sample's number is its index in all plus 1.
	at keytable.Table
	// nodes and functions count those that the origin was the first to need. bytes is their memory, with that of
	// samples and lanes.
	nodes, functions, bytes int
}

// sample has the growth of a node.
type sample struct {
	node, lane  uint32
	isTruncated bool
	values      callsum.PathValues
}

// key is the key of a node in nodeAt.
func (n node) key() uint64 { return uint64(n.parent)<<32 | uint64(n.function) }

// isPlain reports whether a sample has no lane and is not truncated.
func (s *sample) isPlain() bool { return s.lane == 0 && !s.isTruncated }

// key is the key of a sample among those of its origin. There are less than 1<<31 lanes: their bound is MaxPaths.
func (s *sample) key() uint64 {
	key := uint64(s.node)<<32 | uint64(s.lane)<<1
	if s.isTruncated {
		key |= 1
	}
	return key
}

// place is where a path of an increment is: its node and its lane, the depth of the node, and the bound that
// left no room for the path. It is unknown unless it has the number of the increment.
type place struct {
	node, lane, depth uint32
	full              bound
	merge             uint32
}

// label is the index of a function of an increment, and the bound that left no room for it.
type label struct {
	function uint32
	full     bound
	merge    uint32
}

// NewGrowth returns a growth without paths.
func NewGrowth(settings Settings) *Growth {
	g := &Growth{
		settings: settings, textAt: map[string]uint32{}, functionAt: map[callevent.Function]uint32{},
		lanes: make([]lane, 1), laneAt: map[lane]uint32{{}: 0}, nodes: make([]node, 1),
		byKey:   map[origin.Key]*samples{},
		unnamed: origin.Unnamed(), counted: map[*origin.Origin]*callsum.Increment{},
	}
	for _, text := range fixedTexts {
		g.text(text)
	}
	g.functions = make([]function, firstFunction)
	g.functions[functionFurther].name = g.text(furtherPaths)
	g.functions[functionDeeper].name = g.text(deeperCalls)
	return g
}

// Add adds the growth of a stream, which belongs to the growth of all from now on. Streams
// may wait for it. So it goes through the paths only if increments pile up.
func (g *Growth) Add(from *origin.Origin, i *callsum.Increment) {
	if len(i.Paths) == 0 {
		return
	}
	i = &callsum.Increment{Functions: i.Functions, Lanes: i.Lanes, Paths: i.Paths, Grown: i.Grown}
	g.added = append(g.added, increment{from, i})
	g.addedBytes += bytesOfAdded + bytesOfGrown*len(i.Grown) + g.newBytes(from, i)
	if g.addedBytes > g.settings.maxAddedBytes() {
		g.merge()
	}
}

// newBytes returns about the memory of the origin, and of the names and paths that its increments before do not have.
// Increments of a stream share names and paths until the stream forgets them.
func (g *Growth) newBytes(from *origin.Origin, i *callsum.Increment) (bytes int) {
	known := g.counted[from]
	g.counted[from] = i
	if known == nil {
		known, bytes = &callsum.Increment{}, from.Bytes
	}
	bytes += bytesOfPath * (len(i.Paths) - shared(i.Paths, known.Paths))
	for n := shared(i.Functions, known.Functions); n < len(i.Functions); n++ {
		if f := i.Functions[n]; n >= len(known.Functions) || known.Functions[n] != f {
			bytes += bytesOfName + len(f.Qualified) + len(f.Display) + len(f.Text) + len(f.File)
		}
	}
	for n, l := range i.Lanes {
		if n >= len(known.Lanes) || known.Lanes[n] != l {
			bytes += bytesOfName + len(l.Name)
		}
	}
	return bytes
}

// shared is the number of elements that a slice has in common with an earlier one, if both are the begin of one array.
func shared[E any](now, before []E) int {
	if len(before) == 0 || len(now) < len(before) || &now[0] != &before[0] {
		return 0
	}
	return len(before)
}

// maxAddedBytes bounds the memory of increments whose paths have no nodes yet.
func (s *Settings) maxAddedBytes() int {
	most := addedBytesOfPath * s.MaxPaths
	if s.MaxBytes > 0 {
		most = min(most, s.MaxBytes/4)
	}
	return most
}

// merge adds all increments to the nodes.
func (g *Growth) merge() {
	for _, i := range g.added {
		g.mergeOne(i.origin, i.Increment)
	}
	clear(g.added)
	clear(g.counted)
	g.added, g.addedBytes = g.added[:0], 0
	if g.settings.Folded != nil && g.folded != ([bounds]uint64{}) {
		g.settings.Folded(g.folded[maxPaths], g.folded[maxBytes])
		g.folded = [bounds]uint64{}
	}
}

// full returns the bound that another path, sample, function, lane or origin reaches, if there are so many, and its
// origin has made some of them. Its memory is bytes, and that of its origin is ownBytes.
func (g *Growth) full(number, own, bytes, ownBytes int) bound {
	switch {
	case own >= g.settings.MaxPaths-number:
		return maxPaths
	case ownBytes+bytes > g.room():
		return maxBytes
	default:
		return noBound
	}
}

// mergeOne adds an increment to the nodes. It looks only at paths that grew, and at those above them:
//
//  1. Each of them gets its place, after its caller.
//  2. The sample of the place grows.
func (g *Growth) mergeOne(from *origin.Origin, i *callsum.Increment) {
	g.merges++
	g.places = append(g.places, make([]place, max(0, len(i.Paths)-len(g.places)))...)
	g.labels = append(g.labels, make([]label, max(0, len(i.Functions)-len(g.labels)))...)
	g.places[0] = place{merge: g.merges}
	to, fullOf := g.samplesOf(from)
	g.reserve(to, i)
	for n := range i.Grown {
		grown := &i.Grown[n]
		s, full := g.sample(to, g.placeOf(to, i, grown.Path), i.Paths[grown.Path].Kind == callsum.PathTruncated)
		s.add(&grown.PathValues)
		if full = max(full, fullOf); full != noBound {
			g.folded[full] += grown.Calls
		}
	}
}

// The most nodes, samples and functions for which memory is reserved. Reserved memory does not count, so it is bounded.
const (
	mostReserved          = 1 << 17
	mostReservedFunctions = 1 << 14
)

// reserve makes room for the nodes, functions and samples of an increment: often one stream has most of the paths, and most of
// these grew. An origin gets at most half of the room that all others leave.
func (g *Growth) reserve(of *samples, i *callsum.Increment) {
	half := max(0, g.room()/2)
	n := min(len(i.Grown), half/(bytesOfNode+bytesOfSample), g.settings.MaxPaths, mostReserved)
	if len(g.nodes) == 1 {
		g.nodes = slices.Grow(g.nodes, n)
		g.nodeAt.Reserve(n)
		g.reserveFunctions(min(len(i.Functions), n, half/(bytesOfFunction+2*bytesOfText), mostReservedFunctions))
	}
	n = max(0, min(n, g.settings.MaxPaths-g.samples))
	of.all = slices.Grow(of.all, n)
	// Samples of lanes are not in their nodes, and neither are those of nodes that another origin owns.
	if len(of.all) == 0 && (len(i.Lanes) > 0 || len(g.origins) > 1) {
		of.at.Reserve(n)
	}
}

// reserveFunctions makes room for n functions and their names, before the first function of a program.
func (g *Growth) reserveFunctions(n int) {
	if len(g.functionAt) > 0 {
		return
	}
	g.functionAt = make(map[callevent.Function]uint32, n)
	g.functions = slices.Grow(g.functions, n)
	texts := make(map[string]uint32, len(g.textAt)+n)
	maps.Copy(texts, g.textAt)
	g.textAt = texts
	g.texts = slices.Grow(g.texts, n)
}

// placeOf returns the place of a path of the increment. It finds those of its callers first.
func (g *Growth) placeOf(of *samples, i *callsum.Increment, path uint32) place {
	g.unknown = g.unknown[:0]
	for at := path; g.places[at].merge != g.merges; at = i.Paths[at].Parent {
		g.unknown = append(g.unknown, at)
	}
	for n := len(g.unknown) - 1; n >= 0; n-- {
		at := g.unknown[n]
		g.places[at] = g.below(of, i, g.places[i.Paths[at].Parent], &i.Paths[at])
	}
	return g.places[path]
}

// below returns the place of a path whose parent is in place p.
func (g *Growth) below(of *samples, i *callsum.Increment, p place, path *callsum.Path) place {
	switch path.Kind {
	case callsum.PathLane:
		if p.lane, p.full = g.lane(of, i.Lanes[path.Label]); p.lane == laneFurther {
			p = place{node: g.furtherNode(), full: p.full}
		}
	case callsum.PathRest:
		p = place{node: g.furtherNode(), full: maxPaths}
	case callsum.PathFunction, callsum.PathTruncated:
		l := &g.labels[path.Label]
		if l.merge != g.merges {
			l.merge = g.merges
			l.function, l.full = g.function(of, i.Functions[path.Label])
		}
		p = g.callee(of, p, l.function, l.full)
	case callsum.PathTop:
	}
	p.merge = g.merges
	return p
}

// callee returns the place of a function that is called in another place. full is the bound that left no room
// for the function.
func (g *Growth) callee(of *samples, p place, function uint32, full bound) place {
	if caller := g.nodes[p.node].function; caller == functionFurther || caller == functionDeeper {
		return p
	}
	p.full = full
	p.depth++
	if p.depth == maxFrames {
		function = functionDeeper
	}
	key := node{parent: p.node, function: function}
	if at := g.nodeAt.Find(key.key()); at != 0 {
		p.node = at
		return p
	}
	if full := g.full(len(g.nodes)-1, of.nodes, bytesOfNode, of.bytes); full != noBound {
		return place{node: g.furtherNode(), full: full}
	}
	p.node = g.newNode(key)
	of.nodes++
	of.bytes += bytesOfNode
	return p
}

func (g *Growth) newNode(n node) uint32 {
	at := uint32(len(g.nodes))
	g.nodes = append(g.nodes, n)
	g.nodeAt.Put(n.key(), at)
	return at
}

// furtherNode returns the node for paths without room.
func (g *Growth) furtherNode() uint32 {
	if g.further == 0 {
		g.further = g.newNode(node{function: functionFurther})
	}
	return g.further
}

// function returns the index of a function, or functionFurther and the bound that left no room.
func (g *Growth) function(of *samples, f *callevent.Function) (uint32, bound) {
	key := callevent.Function{Qualified: f.Qualified, File: f.File, Line: f.Line}
	if at, ok := g.functionAt[key]; ok {
		return at, noBound
	}
	bytes := bytesOfFunction + 2*bytesOfText + len(f.Qualified) + len(f.File)
	if full := g.full(len(g.functions)-int(firstFunction), of.functions, bytes, of.bytes); full != noBound {
		return functionFurther, full
	}
	name := f.Qualified
	if name == "" {
		name = noFunction
	}
	at := uint32(len(g.functions))
	g.functions = append(g.functions, function{name: g.text(name), file: g.text(f.File), line: f.Line})
	g.functionAt[key] = at
	of.functions++
	of.bytes += bytes
	return at, noBound
}

// text returns the index of a text.
func (g *Growth) text(s string) uint32 {
	if at, ok := g.textAt[s]; ok {
		return at
	}
	at := uint32(len(g.texts))
	g.texts = append(g.texts, s)
	g.textAt[s] = at
	g.bytes += len(s)
	return at
}

// laneFurther is no index of a lane.
const laneFurther uint32 = 1<<32 - 1

// lane returns the index of a lane, or laneFurther and the bound that left no room.
func (g *Growth) lane(of *samples, from callevent.Lane) (uint32, bound) {
	l := lane{name: from.Name}
	if id, is := callevent.ThreadID(from.ID); is {
		l.id, l.isThread = id, true
	}
	if at, ok := g.laneAt[l]; ok {
		return at, noBound
	}
	if full := g.full(len(g.lanes)-1, 0, bytesOfLane+len(l.name), of.bytes); full != noBound {
		return laneFurther, full
	}
	at := uint32(len(g.lanes))
	g.lanes = append(g.lanes, l)
	g.laneAt[l] = at
	g.bytes += len(l.name)
	of.bytes += bytesOfLane + len(l.name)
	return at, noBound
}

// samplesOf returns the samples of an origin, or those of the unnamed origin and the bound that left no room.
func (g *Growth) samplesOf(from *origin.Origin) (*samples, bound) {
	if s := g.byKey[from.Key]; s != nil {
		return s, noBound
	}
	if full := g.full(len(g.origins), 0, bytesOfOrigin+from.Bytes, 0); full != noBound && from != g.unnamed {
		s, _ := g.samplesOf(g.unnamed)
		return s, full
	}
	s := &samples{origin: from, number: uint32(len(g.origins) + 1)}
	g.origins = append(g.origins, s)
	g.byKey[from.Key] = s
	g.bytes += from.Bytes
	return s, noBound
}

// sample returns the sample of a place, or that of paths without room, and the bound that left no room.
func (g *Growth) sample(of *samples, p place, isTruncated bool) (*sample, bound) {
	made := sample{node: p.node, lane: p.lane, isTruncated: isTruncated}
	at := g.numberOf(of, &made)
	if at == 0 {
		if full := g.full(g.samples, len(of.all), bytesOfSample+bytesOfEntry, of.bytes); full != noBound {
			p.full = full
			made = sample{node: g.furtherNode()}
			at = g.numberOf(of, &made)
		}
	}
	if at == 0 {
		of.all = append(of.all, made)
		at = uint32(len(of.all))
		g.setNumber(of, &made, at)
		of.bytes += bytesOfSample
		g.samples++
	}
	return &of.all[at-1], p.full
}

// numberOf returns the number of a sample, or 0.
func (g *Growth) numberOf(of *samples, s *sample) uint32 {
	if n := &g.nodes[s.node]; s.isPlain() && n.owner == of.number {
		return n.sample
	}
	return of.at.Find(s.key())
}

// setNumber sets the number of a sample, for numberOf.
func (g *Growth) setNumber(of *samples, s *sample, number uint32) {
	if n := &g.nodes[s.node]; s.isPlain() && n.owner == 0 {
		n.owner, n.sample = of.number, number
		return
	}
	of.at.Put(s.key(), number)
	of.bytes += bytesOfEntry
	g.bytes += bytesOfEntry
}

func (s *sample) add(v *callsum.PathValues) {
	s.values.Calls += v.Calls
	s.values.Errors += v.Errors
	if s.values.Self += v.Self; s.values.Self < 0 {
		s.values.Self = math.MaxInt64 // many threads ended after some months
	}
}

// Approximate memory of entries beside their texts, with their places in slices and maps.
const (
	bytesOfGrowth   = 4000
	bytesOfText     = 70
	bytesOfFunction = 130
	bytesOfLane     = 120
	bytesOfNode     = 54
	bytesOfSample   = 47
	// bytesOfEntry is for a sample that is not in its node.
	bytesOfEntry = 48
	// bytesOfOrigin is with the sample of paths without room.
	bytesOfOrigin = 160 + bytesOfSample + bytesOfEntry
	// bytesOfPlace is for a path of the longest increment, and bytesOfLabel for a function.
	bytesOfPlace = 20
	bytesOfLabel = 12
	// bytesOfAdded is for an increment, bytesOfGrown for each growth in it, bytesOfPath for each path, and
	// bytesOfName for each function and lane. Streams share paths and names, and may have forgotten them.
	bytesOfAdded = 200
	bytesOfGrown = 32
	bytesOfPath  = 12
	bytesOfName  = 110
)

// addedBytesOfPath bounds the memory of increments whose paths have no nodes yet, for each path of
// MaxPaths.
const addedBytesOfPath = 256

// Bytes returns about the memory of the growth. The texts of increments, which it shares, count too.
func (g *Growth) Bytes() int { return g.merged() + g.addedBytes }

// room is the memory that nodes and samples may still need. A quarter of MaxBytes is for increments that
// are not merged yet.
func (g *Growth) room() int {
	if g.settings.MaxBytes == 0 {
		return math.MaxInt
	}
	return g.settings.MaxBytes - g.settings.MaxBytes/4 - g.merged()
}

// merged is about the memory of all that has nodes.
func (g *Growth) merged() int {
	return bytesOfGrowth + g.bytes + bytesOfText*len(g.texts) + bytesOfFunction*len(g.functions) + bytesOfLane*len(g.lanes) +
		bytesOfNode*len(g.nodes) + bytesOfSample*g.samples + bytesOfOrigin*len(g.origins) + bytesOfPlace*cap(g.places) + bytesOfLabel*cap(g.labels)
}
