// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"strings"
	"time"
)

// Kind is the meaning of a tree's values. The zero Kind is [Calls]. Any other is a sample type
// of profiles from telemetry: both texts can be anything.
type Kind struct {
	Type, Unit string
}

// Calls is the kind of the trees of spans: their values are nanoseconds.
var Calls = Kind{}

// Snapshot is a call tree at one moment.
type Snapshot struct {
	Service string
	Kind    Kind
	// From and To are the begin and end of the time in which the calls arrived.
	From, To time.Time
	// Lost are the gaps of the numbers.
	Lost Lost
	// Missing are the classes of the service whose calls are not recorded.
	Missing Missing
	// Remarks are sentences about other gaps.
	Remarks []string
	// Nodes are in pre-order: a parent stands before its children, and a node's
	// subtree follows it without a gap. Several can stand at the top.
	Nodes []Node
}

// Missing are classes whose calls a tracer cannot see. Their callees look as if their callers
// called them.
type Missing struct {
	Classes int64
	// First has the names of some of them.
	First string
}

// maxMissingNames bounds the names in Missing, in bytes.
const maxMissingNames = 1024

// Lost are the gaps of a tree's numbers, for want of room or time.
type Lost struct {
	// Forgotten are calls that were forgotten before PendingTimeout. Later callees of them are
	// below [MissingParent], and count as their own time. Most have none.
	Forgotten uint64
	// GivenUp are callers that did not arrive while there was room and time to wait. Their
	// callees are below [MissingParent].
	GivenUp uint64
	// Folded stands for small paths below its parent that were folded to make room. Later calls
	// of the same paths can have nodes again.
	FoldedPaths uint64
	// LeftOut are calls that their sender left out.
	LeftOut LeftOut
}

// LeftOut are calls without spans. The spans of their callers have their sums, and their time is a part of the callers' own
// times.
type LeftOut struct {
	Calls, Errors uint64
	// Time is in nanoseconds.
	Time int64
}

// Add adds sums. A sum beyond the range is the largest number.
func (l *LeftOut) Add(o LeftOut) {
	l.Calls = plusCount(l.Calls, o.Calls)
	l.Errors = plusCount(l.Errors, o.Errors)
	l.Time = plus(l.Time, o.Time)
}

// since is the difference to an earlier state.
func (l Lost) since(then Lost) Lost {
	return Lost{
		l.Forgotten - then.Forgotten, l.GivenUp - then.GivenUp, l.FoldedPaths - then.FoldedPaths,
		LeftOut{l.LeftOut.Calls - then.LeftOut.Calls, l.LeftOut.Errors - then.LeftOut.Errors, l.LeftOut.Time - then.LeftOut.Time},
	}
}

func (l *Lost) add(o Lost) {
	l.Forgotten += o.Forgotten
	l.GivenUp += o.GivenUp
	l.FoldedPaths += o.FoldedPaths
	l.LeftOut.Add(o.LeftOut)
}

// Node is a path of calls: a function below its parent.
type Node struct {
	// Parent is an index in Nodes, or -1 at the top.
	Parent int32
	// Function is the name in the telemetry, cut to the setting. It can be any text, empty too.
	// If Mark says that the node is no function, it is the text of Mark.
	Function string
	// File and Line are those of the first call that has them, or empty and 0.
	File string
	Line int64
	Mark Mark
	// Calls is the number of calls or samples that ended in this path, or in all paths that the
	// node stands for. Errors is the number of failed ones.
	Calls, Errors uint64
	// Total is their time with callees, and Self without: nanoseconds, or the unit of the kind.
	// Self is below 0 only if values are. A node's Self and its children's Totals may not add
	// up to its Total: children that run at the same time, or longer than their parent, take
	// more together.
	Total, Self int64
}

// Mark is the special meaning of a node.
type Mark uint8

// The marks.
const (
	// Plain: none.
	Plain Mark = iota
	// Truncated: the ends of the calls were not seen. Calls of the same function with an end
	// are another node.
	Truncated
	// MissingParent stands at the top, for all callers that were not seen.
	MissingParent
	// Folded stands for small paths below its parent that were folded to make room. Later calls
	// of the same paths can have nodes again.
	Folded
	// Deep stands for everything deeper than [MaxDepth].
	Deep
)

// String is the name of a node that is no function, or the special meaning of a function.
func (m Mark) String() string {
	switch m {
	case Truncated:
		return "truncated"
	case MissingParent:
		return "(parent not seen)"
	case Folded:
		return "(folded: small paths)"
	case Deep:
		return "(deeper calls)"
	}
	return ""
}

func (k Kind) clone() Kind { return Kind{Type: strings.Clone(k.Type), Unit: strings.Clone(k.Unit)} }
