// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

import (
	"strings"
	"time"
)

// Reply is an answer to a command: a pointer to one of the types of this file. What it
// points to, slices included, is valid until whoever is given it returns; strings stay.
type Reply interface{ reply() }

type (
	// Version is what the server is.
	Version struct {
		// Text is as the server says it: "1.7.6.6".
		Text string
	}

	// Sessions are the server's process and who is connected to it.
	Sessions struct {
		// ProcessID is the Java process's.
		ProcessID int64
		Sessions  []Session
	}

	// Session is one connection to the server.
	Session struct {
		ID int64
		// Duration is after how long of silence the server ends it.
		Duration time.Duration
		Charset  string
		// From and To are the addresses of its two ends, as the server says them.
		From, To string
	}

	// Affected says how many classes and methods a command's patterns matched.
	Affected struct {
		Classes, Methods int64
		// Rows is how many of what the command is about, where the server says that instead.
		Rows int64
	}

	// Statistics are of one cycle of a [MonitorCommand].
	Statistics struct{ Methods []MethodStatistics }

	// MethodStatistics are of one method in one cycle.
	MethodStatistics struct {
		// Time is the end of the cycle by the server's clock.
		Time          time.Time
		Class, Method string
		// Calls are those that ended in the cycle: Succeeded ones, and Failed ones, which
		// threw. All are at least 0, and those two together at most Calls.
		Calls, Succeeded, Failed int64
		// Mean is the calls' mean time, at least 0, where HasMean; Min and Max are the
		// shortest and the longest, where HasRange.
		Mean, Min, Max    time.Duration
		HasMean, HasRange bool
	}

	// Tree is one traced call and what it called itself.
	Tree struct {
		Thread Thread
		// Nodes are the calls in the order in which they began: each follows its caller, which
		// is the nearest one before it of a lower depth. There is at least one; the first one
		// has depth 0, and no other.
		Nodes []Node
		// Unended says that a call of it had not ended when the console said it, so that its
		// times, and who called what, are those of other calls.
		Unended bool `json:",omitempty"`
	}

	// Node is one call of a [Tree].
	Node struct {
		Depth int32
		// Start and End are since the tree's start, at least 0; the server knows whole
		// milliseconds. Start is at most End.
		Start, End    time.Duration
		Class, Method string
		// Line is that of the caller's source from which it was called; 0: not said.
		Line int32
		// Throws is the type of what it threw; empty: nothing, or nothing is said of it.
		Throws string
	}

	// Thread is a thread of the program.
	Thread struct {
		Name     string
		ID       int64
		Daemon   bool
		Priority int32
	}

	// CallStack is from where a method was called.
	CallStack struct {
		Thread Thread
		// Frames begin with the method.
		Frames []Frame
	}

	// Frame is one frame of a [CallStack].
	Frame struct {
		Class, Method string
		// File is that of the source; empty: unknown.
		File string
		// Line is below 0 where it is unknown (-1), or the method is a native one (-2).
		Line int32
	}

	// Record is a recorded call, which has ended.
	Record struct {
		// Index is the record's number at the server; Process that of the call of which it
		// is a part, 0 where it is not said.
		Index, Process int64
		// Time is when it was recorded, the call's end, by the server's clock, in seconds.
		Time time.Time
		// Cost is how long it took, at least 0; the server knows whole milliseconds.
		Cost            time.Duration
		Returned, Threw bool
		// Object is the identity hash code of what it was called on, as the server says it,
		// "0x4b1210ee"; empty: none.
		Object string
		// Class is the qualified name, or only the simple one where IsSimple.
		Class, Method string
		IsSimple      bool
	}

	// RecordDetail is all that is known of a recorded call.
	RecordDetail struct {
		Record
		// Parameters, Return and Exception are as the server writes them: texts of
		// Java's objects. Exception begins with the type where the text is Java's own.
		Parameters        []string
		Return, Exception string
		// Stack is from where it was called, where HasStack.
		Stack    CallStack
		HasStack bool
	}

	// Class is a loaded class.
	Class struct {
		Name string
		// CodeSource is where it was loaded from.
		CodeSource string
		// Kinds are the words that say what it is, of all that java.lang.Class can be asked
		// for: "interface", "annotation", "enum", "anonymous-class", "array", "local-class",
		// "member-class", "primitive", "synthetic".
		Kinds []string
		// Modifier is as the server says it: words, or an undocumented number.
		Modifier                string
		Annotations, Interfaces []string
		Super                   string
		// Loaders are the class loader and its parents.
		Loaders []string
		Fields  []Field
	}

	// Field is a field of a [Class].
	Field struct {
		Modifier, Type, Name string
		// Value is as the server writes it, of static fields.
		Value string
	}

	// Method is a method of a loaded class.
	Method struct {
		// Class declares it.
		Class, Name                         string
		Modifier                            string
		Annotations, Parameters, Exceptions []string
		Return                              string
	}
)

func (*Version) reply()      {}
func (*Sessions) reply()     {}
func (*Affected) reply()     {}
func (*Statistics) reply()   {}
func (*Tree) reply()         {}
func (*CallStack) reply()    {}
func (*Record) reply()       {}
func (*RecordDetail) reply() {}
func (*Class) reply()        {}
func (*Method) reply()       {}

// SimpleName is the name of a class without its package.
func SimpleName(class string) string {
	return class[strings.LastIndexByte(class, '.')+1:]
}
