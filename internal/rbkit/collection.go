// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"math"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// Collection writes events into a message: it is a Visitor, so that what a Decoder reads
// can be written again. It writes in the dialect of the last Message; events that the
// dialect doesn't have are left out, and counted in Absent. Slices are used again.
type Collection struct {
	// Absent is how many events were left out of all messages.
	Absent int

	header Header
	body   []byte
	events int
	// stacks and files are the parts of the snapshot under way.
	stacks, files snapshotPart
	// sites are those of file.
	sites  snapshotPart
	file   []byte
	inFile bool
}

var _ Visitor = (*Collection)(nil)

// snapshotPart is a map that is being written: its entries and how many there are.
type snapshotPart struct {
	body []byte
	n    uint32
}

func (p *snapshotPart) reset() { p.body, p.n = p.body[:0], 0 }

func (p *snapshotPart) appendTo(b []byte) []byte {
	return append(msgp.AppendMapHeader(b, p.n), p.body...)
}

// Message begins a message.
func (c *Collection) Message(h Header) { c.header, c.body, c.events = h, c.body[:0], 0 }

// Events is how many events the message has.
func (c *Collection) Events() int { return c.events }

// Size is how many bytes they have.
func (c *Collection) Size() int { return len(c.body) }

// Append appends the message, as a server publishes it, to b.
func (c *Collection) Append(b []byte) []byte {
	number, _ := c.header.Dialect.numberOf(EventCollection)
	entries := uint32(3)
	if c.header.HasCounter {
		entries++
	}
	b = msgp.AppendMapHeader(b, entries)
	b = appendTyped(b, number, c.header.Millis)
	if c.header.HasCounter {
		b = msgp.AppendUint64(append(b, keyCounter), c.header.Counter)
	}
	b = msgp.AppendArrayHeader(append(b, keyPayload), uint32(c.events))
	return append(b, c.body...)
}

// appendTyped appends what messages and events begin with, behind the header of the map.
func appendTyped(b []byte, number uint64, millis int64) []byte {
	b = msgp.AppendUint64(append(b, keyType), number)
	return msgp.AppendFloat64(append(b, keyTime), float64(millis))
}

// event begins an event of so many entries.
func (c *Collection) event(t Type, millis int64, entries uint32) bool {
	number, ok := c.header.Dialect.numberOf(t)
	if !ok {
		c.Absent++
		return false
	}
	c.events++
	c.body = appendTyped(msgp.AppendMapHeader(c.body, entries), number, millis)
	return true
}

// withPayload begins an event that has a payload and nothing else.
func (c *Collection) withPayload(t Type, millis int64) bool {
	if !c.event(t, millis, 3) {
		return false
	}
	c.body = append(c.body, keyPayload)
	return true
}

// ObjectCreated writes that an object was created.
func (c *Collection) ObjectCreated(millis int64, id uint64, class []byte) {
	if c.withPayload(ObjectCreated, millis) {
		c.body = msgp.AppendUint64(append(msgp.AppendMapHeader(c.body, 2), keyObjectID), id)
		c.body = appendText(append(c.body, keyClass), class)
	}
}

// ObjectDestroyed writes that an object was destroyed.
func (c *Collection) ObjectDestroyed(millis int64, id uint64) {
	if c.withPayload(ObjectDestroyed, millis) {
		c.body = msgp.AppendUint64(append(msgp.AppendMapHeader(c.body, 1), keyObjectID), id)
	}
}

// GC writes an event of the garbage collector.
func (c *Collection) GC(millis int64, what Type) { c.event(what, millis, 2) }

// GCStats writes statistics. Those that are not known are empty texts.
func (c *Collection) GCStats(millis int64, stats []Stat) {
	if !c.withPayload(GCStats, millis) {
		return
	}
	c.body = msgp.AppendMapHeader(c.body, uint32(len(stats)))
	for _, s := range stats {
		c.body = msgp.AppendStringFromBytes(c.body, s.Key)
		if s.Known {
			c.body = appendInt(c.body, s.Value)
		} else {
			c.body = msgp.AppendString(c.body, "")
		}
	}
}

// DumpPart begins a part of a dump. As many objects as it announces have to follow, or
// the message is one that announces more than it has.
func (c *Collection) DumpPart(millis int64, part DumpPart) {
	if !c.event(ObjectSpaceDump, millis, 5) {
		return
	}
	c.body = msgp.AppendUint64(append(c.body, keyCorrelation), part.Correlation)
	c.body = msgp.AppendUint64(append(c.body, keyComplete), part.Complete)
	c.body = msgp.AppendArrayHeader(append(c.body, keyPayload), part.Objects)
}

// DumpObject writes an object of the part.
func (c *Collection) DumpObject(o *DumpedObject) {
	b := msgp.AppendMapHeader(c.body, 6)
	b = msgp.AppendUint64(append(b, keyObjectID), o.ID)
	b = appendText(append(b, keyClass), o.Class)
	b = msgp.AppendArrayHeader(append(b, keyReferences), o.References.n)
	b = append(b, o.References.packed...)
	b = appendText(append(b, keyFile), o.File)
	b = appendOptional(append(b, keyLine), o.Line, o.HasLine)
	c.body = appendOptional(append(b, keySize), o.Size, o.HasSize)
}

// ReferencesTo makes references of IDs.
func ReferencesTo(ids ...uint64) References {
	r := References{n: uint32(len(ids))}
	for _, id := range ids {
		r.packed = msgp.AppendUint64(r.packed, id)
	}
	return r
}

// CPUSample writes a stack.
func (c *Collection) CPUSample(millis int64, frames []Frame) {
	if c.withPayload(CPUSample, millis) {
		c.body = appendFrames(c.body, frames, true)
	}
}

// appendFrames appends a stack. Frames of snapshots have no label.
func appendFrames(b []byte, frames []Frame, labelled bool) []byte {
	b = msgp.AppendArrayHeader(b, uint32(len(frames)))
	for i := range frames {
		f := &frames[i]
		entries := uint32(4)
		if labelled {
			entries++
		}
		if f.HasThread {
			entries++
		}
		b = appendText(append(msgp.AppendMapHeader(b, entries), keyMethod), f.Method)
		if labelled {
			b = appendText(append(b, keyLabel), f.Label)
		}
		b = appendText(append(b, keyFile), f.File)
		b = msgp.AppendUint64(append(b, keyLine), f.Line)
		singleton := byte(0)
		if f.Singleton {
			singleton = 1
		}
		b = append(b, keySingleton, singleton)
		if f.HasThread {
			b = msgp.AppendUint64(append(b, keyThread), f.Thread)
		}
	}
	return b
}

// SnapshotBegin begins a snapshot, which SnapshotEnd writes.
func (c *Collection) SnapshotBegin(millis int64) {
	c.stacks.reset()
	c.files.reset()
	c.sites.reset()
	c.inFile = false
	if c.withPayload(AllocationSnapshot, millis) {
		c.body = msgp.AppendMapHeader(c.body, 2)
	}
}

// SnapshotStack writes a stack of the snapshot.
func (c *Collection) SnapshotStack(id uint64, frames []Frame) {
	c.stacks.n++
	c.stacks.body = appendFrames(msgp.AppendUint64(c.stacks.body, id), frames, false)
}

// SnapshotAllocation writes an allocation of the snapshot. Those of a file have to follow
// each other.
func (c *Collection) SnapshotAllocation(a *Allocation) {
	if !c.inFile || string(c.file) != string(a.File) {
		c.endFile()
		c.file, c.inFile = append(c.file[:0], a.File...), true
	}
	class := string(a.Class)
	if a.Class == nil {
		class = hiddenClass
	}
	c.sites.n++
	key := strconv.FormatUint(a.Line, 10) + " " + class + " " + strconv.FormatUint(a.Size, 10)
	b := appendText(c.sites.body, []byte(key))
	b = msgp.AppendUint64(append(msgp.AppendMapHeader(b, 2), keyCount), a.Count)
	b = append(b, keyStacks)
	if a.Stacks.n == 0 {
		c.sites.body = msgp.AppendNil(b)
		return
	}
	c.sites.body = append(msgp.AppendMapHeader(b, a.Stacks.n), a.Stacks.packed...)
}

func (c *Collection) endFile() {
	if !c.inFile {
		return
	}
	c.files.n++
	c.files.body = c.sites.appendTo(appendText(c.files.body, c.file))
	c.sites.reset()
	c.inFile = false
}

// SnapshotEnd ends a snapshot.
func (c *Collection) SnapshotEnd() {
	if _, ok := c.header.Dialect.numberOf(AllocationSnapshot); !ok {
		return
	}
	c.endFile()
	c.body = c.stacks.appendTo(append(c.body, keyStacks))
	c.body = c.files.appendTo(append(c.body, keyAllocations))
}

// Unknown is left out: what it was is not known.
func (c *Collection) Unknown(int64, uint64) { c.Absent++ }

// appendText appends a text, or nil, as servers pack events: in the encodings of the old
// MessagePack, which has no str8.
func appendText(b, text []byte) []byte {
	switch {
	case text == nil:
		return msgp.AppendNil(b)
	case len(text) > maxFixText-minFixText && len(text) <= math.MaxUint8:
		b = append(b, leadStr16, 0, byte(len(text)))
		return append(b, text...)
	default:
		return msgp.AppendStringFromBytes(b, text)
	}
}

func appendOptional(b []byte, n uint64, ok bool) []byte {
	if !ok {
		return msgp.AppendNil(b)
	}
	return msgp.AppendUint64(b, n)
}

// appendInt appends a number as servers do: as an unsigned one where that will do.
func appendInt(b []byte, n int64) []byte {
	if n >= 0 {
		return msgp.AppendUint64(b, uint64(n))
	}
	return msgp.AppendInt64(b, n)
}
