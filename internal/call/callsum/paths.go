// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/keytable"
)

// paths are the call paths of a stream, by number, with their values.
type paths struct {
	settings *Settings
	// all only grows, because increments share it.
	all []Path
	// states are the other fields of the paths.
	states []pathState
	// grown are the paths that grew since the last increment.
	grown []uint32
	// isRecent has an entry for each path: it, or a path below it, has grown since the last call of forgetIdle. recent is the
	// number of such paths.
	isRecent []bool
	recent   int
	// children finds paths by parent, label and kind.
	children keytable.Table
	// rest is the PathRest, or 0.
	rest uint32

	// lanes have the latest names. byLane finds a lane's path by its ID.
	lanes  []callevent.Lane
	byLane keytable.Table
	// nameBytes is the memory of the lanes' names.
	nameBytes int
}

// pathState has the values of a path, and the callee that it called last.
type pathState struct {
	PathValues
	callee, calleeFunction uint32
}

const (
	// top is the path of the top.
	top = 0
	// noFunction is no function's number.
	noFunction = ^uint32(0)

	pathBytes  = int(unsafe.Sizeof(Path{}))
	grownBytes = int(unsafe.Sizeof(uint32(0)))
	stateBytes = int(unsafe.Sizeof(pathState{}))
	laneBytes  = int(unsafe.Sizeof(callevent.Lane{}))
)

func newPaths(settings *Settings) paths {
	p := paths{settings: settings}
	p.append(Path{Kind: PathTop})
	return p
}

func (p *paths) append(path Path) uint32 {
	p.all = append(p.all, path)
	p.states = append(p.states, pathState{calleeFunction: noFunction})
	p.isRecent = append(p.isRecent, false)
	return uint32(len(p.all) - 1)
}

// callee returns the path of a function below its caller's path.
func (p *paths) callee(caller, function uint32) uint32 {
	if state := &p.states[caller]; state.calleeFunction == function {
		return state.callee
	}
	return p.otherCallee(caller, function)
}

// otherCallee is callee for a function that the caller did not call last.
func (p *paths) otherCallee(caller, function uint32) uint32 {
	path := p.child(Path{Parent: caller, Label: function})
	if path != p.rest {
		state := &p.states[caller]
		state.callee, state.calleeFunction = path, function
	}
	return path
}

// truncated returns the path for truncated calls of a function's path.
func (p *paths) truncated(path uint32) uint32 {
	if path == p.rest {
		return path
	}
	beside := p.all[path]
	beside.Kind = PathTruncated
	return p.child(beside)
}

// child returns the number of a path, which it may make.
func (p *paths) child(path Path) uint32 {
	if path.Parent == p.rest && p.rest != 0 {
		return p.rest
	}
	key := uint64(path.Kind)<<62 | uint64(path.Parent)<<32 | uint64(path.Label)
	number := p.children.Find(key)
	if number != 0 {
		return number
	}
	if !p.settings.reserve(p.made()) {
		return p.theRest()
	}
	number = p.append(path)
	p.children.Put(key, number)
	return number
}

// theRest returns the PathRest.
func (p *paths) theRest() uint32 {
	if p.rest == 0 {
		p.rest = p.append(Path{Parent: top, Kind: PathRest})
	}
	return p.rest
}

// lane returns the path of a lane, which has the name now. known is its path as far as the
// caller knows, or the top.
func (p *paths) lane(known uint32, id uint64, name string) uint32 {
	if known == top || known == p.rest {
		if known = p.byLane.Find(id); known == 0 {
			known = p.newLane(id)
		}
	}
	if path := &p.all[known]; path.Kind == PathLane {
		l := &p.lanes[path.Label]
		p.nameBytes += len(name) - len(l.Name)
		l.Name = name
	}
	return known
}

func (p *paths) newLane(id uint64) uint32 {
	path := p.child(Path{Parent: top, Label: uint32(len(p.lanes)), Kind: PathLane})
	if path != p.rest {
		p.lanes = append(p.lanes, callevent.Lane{ID: id})
		p.byLane.Put(id, path)
	}
	return path
}

// count counts a call at its path. callees is the time of its callees.
func (p *paths) count(path uint32, errors uint64, duration, callees int64) {
	state := &p.states[path]
	if state.Calls == 0 {
		p.grown = append(p.grown, path)
	}
	state.Calls++
	state.Errors += errors
	state.Self = added(state.Self, max(0, duration-callees))
}

// sortedShare is the part of all paths, one of so many, up to which take sorts those that grew. If more grew, a look at
// all paths is faster.
const sortedShare = 32

// take returns all paths, and the growth since the last call of take.
func (p *paths) take() ([]Path, []PathGrowth) {
	taken := make([]PathGrowth, 0, len(p.grown))
	if len(p.grown) <= len(p.all)/sortedShare {
		slices.Sort(p.grown)
		for _, path := range p.grown {
			taken = append(taken, p.takeOne(path))
		}
	} else {
		for path := range p.states {
			if p.states[path].Calls > 0 {
				taken = append(taken, p.takeOne(uint32(path)))
			}
		}
	}
	p.grown = p.grown[:0]
	return p.all[:len(p.all):len(p.all)], taken
}

// takeOne returns the growth of a path.
func (p *paths) takeOne(path uint32) PathGrowth {
	taken := PathGrowth{path, p.states[path].PathValues}
	p.states[path].PathValues = PathValues{}
	p.markRecent(path)
	return taken
}

// markRecent marks a path, and all paths above it, as recent.
func (p *paths) markRecent(path uint32) {
	for ; path != top && !p.isRecent[path]; path = p.all[path].Parent {
		p.isRecent[path] = true
		p.recent++
	}
}

// idleShare is the part of all paths, one of so many, that may be idle before all are forgotten.
const idleShare = 4

// forgetIdle forgets all paths if too many of them are idle, and reports whether it did. If calls are in the PathRest, one is too
// many. A path is idle if it did not grow since the last call of forgetIdle, and no open call needs it. open are the paths
// of open calls.
func (p *paths) forgetIdle(open iter.Seq[uint32]) bool {
	most := len(p.all) / idleShare
	if p.rest != 0 {
		most = 0
	}
	idle := func() int { return len(p.all) - 1 - p.recent } // without the top
	if idle() > most {
		for path := range open {
			p.markRecent(path)
		}
	}
	forgets := idle() > most
	clear(p.isRecent)
	p.recent = 0
	if forgets {
		p.release()
		*p = newPaths(p.settings)
	}
	return forgets
}

// release returns the room of the paths to the other streams.
func (p *paths) release() { p.settings.made.Add(-p.made()) }

// made is the number of paths without the top and the rest.
func (p *paths) made() int64 {
	made := int64(len(p.all) - 1)
	if p.rest != 0 {
		made--
	}
	return made
}

// bytes is the memory of the paths.
func (p *paths) bytes() int {
	return cap(p.all)*pathBytes + cap(p.states)*stateBytes + cap(p.grown)*grownBytes + cap(p.isRecent) + p.children.Bytes() +
		cap(p.lanes)*laneBytes + p.byLane.Bytes() + p.nameBytes
}
