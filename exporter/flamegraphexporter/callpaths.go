// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// The connector stack_pairing makes these.
const (
	// attributeCallPaths marks a profile whose samples are call paths with all of their calls.
	attributeCallPaths = "callbraid.call_paths"
	// furtherPaths is the frame for paths without room in the connector, and deeperCalls that for
	// calls too deep for it.
	furtherPaths = "(further paths)"
	deeperCalls  = "(deeper calls)"
)

// pathValueOf returns the meaning of the values of a profile of a kind, or false if it has no call
// paths.
func (r *profileReader) pathValueOf(profile pprofile.Profile, kind calltree.Kind) (pathValue, bool) {
	if !r.isMarked(profile.AttributeIndices(), attributeCallPaths) {
		return 0, false
	}
	switch kind {
	case calltree.Kind{Type: "calls", Unit: "count"}:
		return pathCalls, true
	case calltree.Kind{Type: "errors", Unit: "count"}:
		return pathErrors, true
	case calltree.Kind{Type: "wall", Unit: "nanoseconds"}:
		return pathSelf, true
	}
	return 0, false
}

// isMarked reports whether one of the attributes has a key and is true.
func (r *profileReader) isMarked(indexes pcommon.Int32Slice, key string) bool {
	table := r.tables.AttributeTable()
	for _, index := range indexes.All() {
		if within(index, table.Len()) && r.text(table.At(int(index)).KeyStrindex()) == key {
			return table.At(int(index)).Value().Bool()
		}
	}
	return false
}

// callPaths read the call paths of a message, one resource after the other:
//
//  1. add sums the profiles of a resource by stack. So each stack is walked once.
//  2. fold walks the stacks from the outermost frame on, and begins where a stack differs from
//     the previous one. The store gets the paths in pieces.
type callPaths struct {
	*profileReader
	// sums are those of the resource, and places find them: two for each stack, the second for
	// calls without an end.
	sums   []pathSum
	places []pathPlace
	// resource is the number of the resource with call paths, from 1 on.
	resource uint32
	// interval is the longest one of its profiles.
	interval time.Duration
	// reported are the threads of the resource that the store knows.
	reported map[int64]bool

	piece *calltree.CallPaths
	// locations have the frames of those that were read.
	locations []pathLocation
	// way leads to the path of the previous stack.
	way []pathStep
}

// pathSum is the sum of a stack. Values are at most the largest int64.
type pathSum struct {
	stack     int32
	truncated bool
	values    [pathValues]uint64
}

// pathPlace is the place of a sum, if it is of the current resource.
type pathPlace struct{ resource, sum uint32 }

// pathLocation are the frames of a location: numbers that follow each other, the outermost first.
// last is 0 if they were not read.
type pathLocation struct {
	first, last uint32
	// rest is Folded or Deep if the frame stands for several paths.
	rest calltree.Mark
}

// pathStep is the path of a location.
type pathStep struct {
	location int32
	path     uint32
	// depth is the number of its frames.
	depth int
	isCut bool
}

func newCallPaths(r *profileReader) *callPaths {
	return &callPaths{
		profileReader: r, piece: calltree.NewCallPaths(), reported: map[int64]bool{}, resource: 1,
		places:    make([]pathPlace, 2*(r.tables.StackTable().Len()+1)),
		locations: make([]pathLocation, r.tables.LocationTable().Len()+1),
	}
}

// add adds the samples of a profile.
func (p *callPaths) add(store *calltree.Store, from calltree.Origin, profile pprofile.Profile, of pathValue) {
	p.interval = max(p.interval, time.Duration(min(profile.DurationNano(), math.MaxInt64)))
	for _, sample := range profile.Samples().All() {
		said := p.attributes(sample.AttributeIndices())
		if said.hasThread && !p.reported[said.thread.ID] {
			p.reported[said.thread.ID] = true
			if p.threads = append(p.threads, said.thread); len(p.threads) == threadsAtOnce {
				p.reportThreads(store, from)
			}
		}
		if value := positive(sample); value > 0 {
			sum := &p.sum(sample.StackIndex(), said.truncated).values[of]
			*sum = min(*sum+value, math.MaxInt64)
		}
	}
	p.reportThreads(store, from)
}

// positive is the sum of a sample's values above 0, at most the largest int64. See sum.add.
func positive(sample pprofile.Sample) uint64 {
	values := sample.Values()
	if values.Len() == 0 {
		return uint64(sample.TimestampsUnixNano().Len())
	}
	sum := uint64(0)
	for _, v := range values.All() {
		sum = min(sum+uint64(max(0, v)), math.MaxInt64)
	}
	return sum
}

// sum is the sum of a stack. It is valid until the next call.
func (p *callPaths) sum(stack int32, truncated bool) *pathSum {
	at := 0
	if within(stack, p.tables.StackTable().Len()) {
		at = 2 * (int(stack) + 1)
	}
	if truncated {
		at++
	}
	place := &p.places[at]
	if place.resource != p.resource {
		*place = pathPlace{resource: p.resource, sum: uint32(len(p.sums))}
		p.sums = append(p.sums, pathSum{stack: stack, truncated: truncated})
	}
	return &p.sums[place.sum]
}

// fold folds the sums of the resource, and forgets them.
func (p *callPaths) fold(store *calltree.Store, from calltree.Origin) {
	for i := range p.sums {
		if p.piece.Len() >= calltree.PathsAtOnce {
			p.foldPiece(store, from)
		}
		sum := &p.sums[i]
		path, isCut := p.path(sum.stack, sum.truncated)
		p.piece.Add(path, sum.values[pathCalls], sum.values[pathErrors], int64(sum.values[pathSelf]), isCut)
	}
	if p.piece.Len() > 0 {
		p.foldPiece(store, from)
	}
	p.resource++
	p.sums, p.interval = p.sums[:0], 0
	if len(p.reported) > 0 {
		p.reported = map[int64]bool{}
	}
}

func (p *callPaths) foldPiece(store *calltree.Store, from calltree.Origin) {
	store.FoldPaths(from, p.piece, p.interval)
	p.piece.Clear()
	p.way = p.way[:0]
}

// path returns the path of a stack. It cuts frames beyond the shown levels, and beyond the number
// that may be read of the message.
func (p *callPaths) path(stack int32, truncated bool) (path uint32, isCut bool) {
	locations := p.stackOf(stack)
	number := locations.Len()
	if number == 0 {
		return p.piece.RestBelow(0, calltree.Folded), true
	}
	same := 0
	for same < min(len(p.way), number) && p.way[same].location == locations.At(number-1-same) {
		same++
	}
	if truncated {
		same = min(same, number-1)
	}
	p.way = p.way[:same]
	at := pathStep{}
	if same > 0 {
		at = p.way[same-1]
	}
	for i := number - 1 - same; i >= 0 && !p.piece.IsRest(at.path); i-- {
		mark := calltree.Plain
		if truncated && i == 0 {
			mark = calltree.Truncated
		}
		if at = p.below(at, locations.At(i), mark); mark == calltree.Plain {
			p.way = append(p.way, at)
		}
	}
	return at.path, at.isCut
}

// stackOf is a stack of the table; an empty one if the index leads nowhere.
func (p *callPaths) stackOf(index int32) pcommon.Int32Slice {
	stacks := p.tables.StackTable()
	if !within(index, stacks.Len()) {
		return pcommon.NewInt32Slice()
	}
	return stacks.At(int(index)).LocationIndices()
}

// below is the path of a location below another path. The mark is that of its innermost frame.
func (p *callPaths) below(at pathStep, location int32, m calltree.Mark) pathStep {
	frames := p.framesOf(location)
	at.location = location
	for frame := frames.first; frame < frames.last; frame++ {
		mark := calltree.Plain
		if frame == frames.last-1 {
			mark = m
		}
		switch {
		case frames.rest != calltree.Plain:
			at.path = p.piece.RestBelow(at.path, frames.rest)
		case at.depth == calltree.MaxDepth-1:
			at.path = p.piece.RestBelow(at.path, calltree.Deep)
		case at.depth >= leastFrames && p.left <= 0:
			at.path, at.isCut = p.piece.RestBelow(at.path, calltree.Folded), true
		default:
			at.path = p.piece.Below(at.path, frame, mark)
			at.depth++
			p.left--
		}
	}
	return at
}

// framesOf returns the frames of a location.
func (p *callPaths) framesOf(index int32) *pathLocation {
	known := &p.locations[len(p.locations)-1]
	if within(index, len(p.locations)-1) {
		known = &p.locations[index]
	}
	if known.last > 0 {
		return known
	}
	frames := p.readLocation(index)
	switch {
	case len(frames) > 1:
	case frames[0].Function == furtherPaths:
		known.rest = calltree.Folded
	case frames[0].Function == deeperCalls:
		known.rest = calltree.Deep
	}
	for i, frame := range slices.Backward(frames) {
		number := p.piece.AddFrame(frame)
		if i == len(frames)-1 {
			known.first = number
		}
		known.last = number + 1
	}
	return known
}
