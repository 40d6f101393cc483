// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"strings"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// names gives the functions, lanes and exceptions of a stream numbers that are
// the same in all its batches.
type names struct {
	functions   []function
	functionIDs map[callevent.Function]uint32

	laneNames   []laneName
	laneNameIDs map[callevent.Lane]uint32

	exceptions   []string
	exceptionIDs map[string]uint32

	// histories are the renames of lanes, by the lanes' IDs.
	histories map[uint64]*history
	// reuses are those of lanes that other threads have got, by the lanes' IDs.
	reuses map[uint64]*reuse

	// bytes is about what the names take, and laneBytes what those of lanes take of it;
	// sweptBytes was that when those that nothing has were forgotten last, or the least
	// since then.
	bytes, laneBytes, sweptBytes int

	// What the indexes of the batch that is being taken stand for. An
	// exception's index is that of the event, so 0 stands for none.
	batchFunctions, batchLanes, batchExceptions []uint32
}

type function struct {
	name *callevent.Function
	// open counts the open frames of the function in all lanes.
	open int32
	// root: it starts a new trace.
	root bool
}

// laneName is a lane under one of its names.
type laneName struct {
	id   uint64
	name string
	// lane is the index of the lane in the stream, or noLane.
	lane int32
}

const noLane = -1

// nameOverhead is about what a name takes beside its bytes: its places in the
// tables, a map's entry.
const nameOverhead = 160

// functionOverhead is that of a function, which is the key of a map with all of its texts.
const functionOverhead = 320

func newNames() names {
	return names{
		functionIDs:  map[callevent.Function]uint32{},
		laneNameIDs:  map[callevent.Lane]uint32{},
		exceptionIDs: map[string]uint32{},
		histories:    map[uint64]*history{},
		reuses:       map[uint64]*reuse{},
		// Exception 0 is none.
		exceptions: []string{""},
	}
}

// learn numbers the names of b.
func (n *names) learn(b *callevent.Batch, isRoot func(string) bool) {
	n.batchFunctions = n.batchFunctions[:0]
	for i := range b.Functions {
		id, ok := n.functionIDs[b.Functions[i]]
		if !ok {
			id = n.addFunction(&b.Functions[i], isRoot)
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
			id = n.addException(e)
		}
		n.batchExceptions = append(n.batchExceptions, id)
	}
}

// The batch's strings share memory, so what is kept is cloned.

func (n *names) addFunction(f *callevent.Function, isRoot func(string) bool) uint32 {
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

// laneName numbers a lane under a name.
func (n *names) laneName(l callevent.Lane) uint32 {
	if id, ok := n.laneNameIDs[l]; ok {
		return id
	}
	id := uint32(len(n.laneNames))
	l.Name = strings.Clone(l.Name)
	n.laneNames = append(n.laneNames, laneName{id: l.ID, name: l.Name, lane: noLane})
	n.laneNameIDs[l] = id
	n.takeForLanes(len(l.Name) + nameOverhead)
	return id
}

// takeForLanes counts bytes that names of lanes take, or, below 0, give back.
func (n *names) takeForLanes(bytes int) {
	n.bytes += bytes
	n.laneBytes += bytes
	n.sweptBytes = min(n.sweptBytes, n.laneBytes)
}

func (n *names) addException(e string) uint32 {
	id := uint32(len(n.exceptions))
	e = strings.Clone(e)
	n.exceptions = append(n.exceptions, e)
	n.exceptionIDs[e] = id
	n.bytes += len(e) + nameOverhead
	return id
}
