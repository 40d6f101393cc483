// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"strings"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// names numbers the functions, lanes and exceptions of a stream. A number is the same in
// all its batches.
type names struct {
	functions   []function
	functionIDs map[callevent.Function]uint32

	laneNames   []laneName
	laneNameIDs map[callevent.Lane]uint32

	exceptions   []string
	exceptionIDs map[string]uint32

	// bytes is about the memory of all names, and bytesOfLanes the part of lanes, with their
	// renames. sweptBytes is the least value of bytesOfLanes since the last sweep.
	bytes, bytesOfLanes, sweptBytes int

	// The stream's numbers for the indexes of the current batch. Index 0 of an exception
	// is none.
	batchFunctions, batchLanes, batchExceptions []uint32
}

type function struct {
	name *callevent.Function
	// open counts the open frames of the function in all lanes.
	open int32
	// root: the function starts a new trace.
	root bool
}

// laneName is a lane with one of its names.
type laneName struct {
	id   uint64
	name string
	// index is that of the lane in the stacks, or noLane.
	index int32
}

const noLane = -1

// nameOverhead is about the memory of a name beside its text: its places in the tables and
// an entry of a map.
const nameOverhead = 160

// functionOverhead is the same for a function. The key of its map holds all of its texts.
const functionOverhead = 320

func newNames() names {
	return names{
		functionIDs: map[callevent.Function]uint32{},
		laneNameIDs: map[callevent.Lane]uint32{},
		// Exception 0 is none.
		exceptions:   []string{""},
		exceptionIDs: map[string]uint32{"": 0},
	}
}

// setBatch numbers the names of the batch, which is the current one from now on.
func (n *names) setBatch(b *callevent.Batch, isRoot func(string) bool) {
	n.batchFunctions = n.batchFunctions[:0]
	for i := range b.Functions {
		id, ok := n.functionIDs[b.Functions[i]]
		if !ok {
			id = n.newFunction(&b.Functions[i], isRoot)
		}
		n.batchFunctions = append(n.batchFunctions, id)
	}
	n.batchLanes = n.batchLanes[:0]
	for _, l := range b.Lanes {
		n.batchLanes = append(n.batchLanes, n.laneName(l))
	}
	n.batchExceptions = append(n.batchExceptions[:0], 0)
	for _, e := range b.Exceptions {
		id, ok := n.exceptionIDs[e]
		if !ok {
			id = n.newException(e)
		}
		n.batchExceptions = append(n.batchExceptions, id)
	}
}

// The strings of a batch share memory, so names are cloned.

func (n *names) newFunction(f *callevent.Function, isRoot func(string) bool) uint32 {
	id := uint32(len(n.functions))
	own := &callevent.Function{
		Qualified: strings.Clone(f.Qualified), Display: strings.Clone(f.Display),
		Text: strings.Clone(f.Text), File: strings.Clone(f.File), Line: f.Line,
	}
	n.functions = append(n.functions, function{name: own, root: isRoot != nil && isRoot(own.Qualified)})
	n.functionIDs[*own] = id
	n.bytes += len(own.Qualified) + len(own.Display) + len(own.Text) + len(own.File) + functionOverhead
	return id
}

// laneName returns the number of a lane with a name.
func (n *names) laneName(l callevent.Lane) uint32 {
	if id, ok := n.laneNameIDs[l]; ok {
		return id
	}
	id := uint32(len(n.laneNames))
	l.Name = strings.Clone(l.Name)
	n.laneNames = append(n.laneNames, laneName{id: l.ID, name: l.Name, index: noLane})
	n.laneNameIDs[l] = id
	n.chargeLanes(len(l.Name) + nameOverhead)
	return id
}

// chargeLanes counts bytes that lanes' names take. A negative number is memory freed.
func (n *names) chargeLanes(bytes int) {
	n.bytes += bytes
	n.bytesOfLanes += bytes
	n.sweptBytes = min(n.sweptBytes, n.bytesOfLanes)
}

func (n *names) newException(e string) uint32 {
	id := uint32(len(n.exceptions))
	e = strings.Clone(e)
	n.exceptions = append(n.exceptions, e)
	n.exceptionIDs[e] = id
	n.bytes += len(e) + nameOverhead
	return id
}

// laneSweep forgets the names of lanes that nothing refers to. The others get new numbers.
type laneSweep struct {
	names *names
	old   []laneName
	// moved is the new number of each name plus 1, or 0.
	moved []uint32
}

// startSweep starts a sweep: move has to be called with each number of a lane's name that
// is in use, and end after that.
func (n *names) startSweep() *laneSweep {
	s := &laneSweep{names: n, old: n.laneNames, moved: make([]uint32, len(n.laneNames))}
	n.laneNames, n.laneNameIDs = nil, map[callevent.Lane]uint32{}
	return s
}

// move keeps a name, and replaces its number.
func (s *laneSweep) move(name *uint32) {
	if n := s.names; s.moved[*name] == 0 {
		kept := &s.old[*name]
		n.laneNames = append(n.laneNames, *kept)
		s.moved[*name] = uint32(len(n.laneNames))
		n.laneNameIDs[callevent.Lane{ID: kept.id, Name: kept.name}] = s.moved[*name] - 1
	}
	*name = s.moved[*name] - 1
}

// end counts the memory of the names that were not moved as free.
func (s *laneSweep) end() {
	for i := range s.old {
		if s.moved[i] == 0 {
			s.names.chargeLanes(-len(s.old[i].name) - nameOverhead)
		}
	}
	s.names.sweptBytes = s.names.bytesOfLanes
}
