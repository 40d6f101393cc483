// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

// Header is what a message is before its events.
type Header struct {
	Dialect Dialect
	// Millis is when it was made, in Unix milliseconds by the server's clock.
	Millis int64
	// Counter is its number among those of its server, from 0 on, and HasCounter whether
	// it has one.
	Counter    uint64
	HasCounter bool
}

// Visitor is told of the events of messages, in their order. millis is the time of an
// event in Unix milliseconds, set when it was packed: it may step back. What lies in
// slices is valid until the method returns.
type Visitor interface {
	// Message begins a message. What follows is in it.
	Message(h Header)

	// ObjectCreated: class is nil for objects that Ruby hides.
	ObjectCreated(millis int64, id uint64, class []byte)
	// ObjectDestroyed: id may never have been created, as far as it was told.
	ObjectDestroyed(millis int64, id uint64)

	// GC is GCStart, GCEndMark or GCEndSweep.
	GC(millis int64, what Type)
	// GCStats are the statistics of the garbage collector.
	GCStats(millis int64, stats []Stat)

	// DumpPart begins a part of a dump of all objects, which follow in DumpObject.
	DumpPart(millis int64, part DumpPart)
	DumpObject(o *DumpedObject)

	// CPUSample is the stack of a thread, the leaf first.
	CPUSample(millis int64, frames []Frame)

	// SnapshotBegin begins what was allocated since the last snapshot: stacks and
	// allocations follow, in any order, and SnapshotEnd ends it.
	SnapshotBegin(millis int64)
	// SnapshotStack is a stack, the leaf first, by an ID that holds in this snapshot.
	SnapshotStack(id uint64, frames []Frame)
	SnapshotAllocation(a *Allocation)
	SnapshotEnd()

	// Unknown is an event of a type that the dialect doesn't have; it was passed over.
	Unknown(millis int64, number uint64)
}
