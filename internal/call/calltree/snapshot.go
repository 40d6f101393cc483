// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"strings"
	"time"
)

// Kind says what the values of a tree are. The zero Kind is [Calls]; any other is a
// sample type of profiles, as telemetry told it: both texts can be anything.
type Kind struct {
	Type, Unit string
}

// Calls is the kind of the trees of spans: their values are nanoseconds.
var Calls = Kind{}

// Snapshot is a call tree at one moment.
type Snapshot struct {
	Service string
	Kind    Kind
	// From and To are the times between which came what was folded.
	From, To time.Time
	// Lost is what happened between them that the numbers lack.
	Lost Lost
	// Missing is what the service's programs have that makes no calls.
	Missing Missing
	// Nodes are in pre-order: a parent stands before its children, and a node's
	// subtree follows it without a gap. Several can stand at the top.
	Nodes []Node
}

// Missing are classes whose calls a tracer cannot see: what they call looks as if called by
// their callers.
type Missing struct {
	Classes int64
	// First has the names of some of them.
	First string
}

// maxMissingNames bounds the names in Missing, in bytes.
const maxMissingNames = 1024

// Lost is what the numbers of a tree lack, for want of room or time.
type Lost struct {
	// Forgotten are calls that were not remembered any more before PendingTimeout. What they
	// called and came later is below [MissingParent], and part of their own time; most often
	// nothing did.
	Forgotten uint64
	// GivenUp are calls that were waited for in vain, because there was no more room or time
	// to wait: what they called is below [MissingParent].
	GivenUp uint64
	// FoldedPaths are paths that were folded to make room: they are in nodes [Folded].
	FoldedPaths uint64
}

// since is what was lost since another one was.
func (l Lost) since(then Lost) Lost {
	return Lost{l.Forgotten - then.Forgotten, l.GivenUp - then.GivenUp, l.FoldedPaths - then.FoldedPaths}
}

func (l *Lost) add(o Lost) {
	l.Forgotten += o.Forgotten
	l.GivenUp += o.GivenUp
	l.FoldedPaths += o.FoldedPaths
}

// Node is a path of calls: the function, below what its parent is.
type Node struct {
	// Parent is an index in Nodes, or -1 at the top.
	Parent int32
	// Function is the name as telemetry told it: it can be anything, empty too, but
	// is no longer than the setting. Where Mark says that the node stands for
	// something else than a function it is Mark's text.
	Function string
	// File and Line are those of the first call that told them, or empty and 0.
	File string
	Line int64
	Mark Mark
	// Calls is how many calls, or samples, ended in just this path, or in all paths that
	// the node stands for; Errors how many of them failed.
	Calls, Errors uint64
	// Total is what they took with what they called, Self without: nanoseconds, or
	// the kind's unit. Self is never below 0 where values are not, and a node's Self
	// and its children's Totals need not add up to its Total: children that ran at
	// the same time, or longer than their parent, take more together than it did.
	Total, Self int64
}

// Mark says what is unusual about a node.
type Mark uint8

// The marks.
const (
	// Plain: nothing is.
	Plain Mark = iota
	// Truncated: calls whose end was not seen. Those of the same function whose end
	// was seen are another node.
	Truncated
	// MissingParent stands at the top, for all callers that were not seen.
	MissingParent
	// Folded stands for small paths below its parent that were folded to make room. The
	// same paths can have nodes again, for what came later.
	Folded
	// Deep stands for all that is deeper than [MaxDepth].
	Deep
)

// String is the name of nodes that stand for something else than a function; of the
// others it is what is unusual about them.
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
