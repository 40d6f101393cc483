// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

// Dialect is a numbering of the types of events. Servers of both say that they speak
// version 2.1.
type Dialect uint8

const (
	// UnknownDialect: no message has come yet.
	UnknownDialect Dialect = iota
	// Released is what servers speak that were released.
	Released
	// Documented is what the specification says, and servers that were never released.
	Documented
)

func (d Dialect) String() string {
	switch d {
	case Released:
		return "released"
	case Documented:
		return "documented"
	default:
		return "unknown"
	}
}

// Type is what an event is, whatever number its dialect has for it.
type Type uint8

// The types of events (section "Event types" of the specification; objects that are
// created and destroyed are in the released dialect alone, snapshots in the other).
const (
	unknownType Type = iota
	ObjectCreated
	ObjectDestroyed
	AllocationSnapshot
	GCStart
	GCEndMark
	GCEndSweep
	ObjectSpaceDump
	GCStats
	EventCollection
	HandshakeReply
	CPUSample
)

// numbered has the types of a dialect by their numbers.
var numbered = [...][]Type{
	Released: {
		releasedCreated: ObjectCreated, releasedDestroyed: ObjectDestroyed, GCStart, GCEndMark, GCEndSweep, ObjectSpaceDump, GCStats,
		EventCollection, HandshakeReply, CPUSample,
	},
	Documented: {
		AllocationSnapshot, GCStart, GCEndMark, GCEndSweep, ObjectSpaceDump, GCStats,
		EventCollection, HandshakeReply, CPUSample,
	},
}

// typeOf is the type that a dialect has under a number; unknownType: none.
func (d Dialect) typeOf(number uint64) Type {
	if number >= uint64(len(numbered[d])) {
		return unknownType
	}
	return numbered[d][number]
}

// numberOf is the number that a dialect has for a type, if it has one.
func (d Dialect) numberOf(t Type) (number uint64, ok bool) {
	for i, other := range numbered[d] {
		if other == t {
			return uint64(i), true
		}
	}
	return 0, false
}

// dialectOf is the dialect in which a number is that of a type.
func dialectOf(t Type, number uint64) Dialect {
	for _, d := range []Dialect{Released, Documented} {
		if d.typeOf(number) == t {
			return d
		}
	}
	return UnknownDialect
}

// The numbers of the events that there are most of.
const (
	releasedCreated   = 0
	releasedDestroyed = 1
)

// The keys of maps (MESSAGE_FIELDS of the specification, and one more that servers send).
const (
	keyType        = 0
	keyTime        = 1
	keyPayload     = 2
	keyObjectID    = 3
	keyClass       = 4
	keyReferences  = 5
	keyFile        = 6
	keyLine        = 7
	keySize        = 8
	keyCounter     = 9
	keyCorrelation = 10
	keyComplete    = 11
	keyMethod      = 12
	keyLabel       = 13
	keySingleton   = 14
	keyThread      = 15
	keyStacks      = 16
	keyCount       = 17
	keyAllocations = 18
	// noKey is one that is none of these.
	noKey = 255
)
