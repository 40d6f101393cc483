// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javamethods

import (
	"strings"
	"time"
)

// Reply is an answer to a command: a pointer to one of the types of this file. The value and its slices are valid only
// until the callback returns. Its strings stay valid.
type Reply interface{ reply() }

type (
	// Version is the version of the server.
	Version struct {
		// Text is the version as the server reports it, such as "1.7.6.6".
		Text string
	}

	// Sessions describe the server's process and its clients.
	Sessions struct {
		// ProcessID is the id of the Java process.
		ProcessID int64
		// Host is the machine of the process, and Started its start as the server writes it; empty means unknown.
		Host    string `json:",omitempty"`
		Started string `json:",omitempty"`

		Sessions []Session
	}

	// Session is one connection to the server.
	Session struct {
		ID int64
		// Duration is the idle time after which the server ends the session.
		Duration time.Duration
		Charset  string
		// From and To are the addresses of both ends, as the server reports them.
		From, To string
	}

	// Affected is the number of classes and methods that a command's patterns matched.
	Affected struct {
		Classes, Methods int64
		// Rows is the number of rows, which the server reports instead for some commands.
		Rows int64
	}

	// Statistics are the result of one cycle of a [MonitorCommand].
	Statistics struct{ Methods []MethodStatistics }

	// MethodStatistics are of one method in one cycle.
	MethodStatistics struct {
		// Time is the end of the cycle, by the clock that ends the cycles.
		Time          time.Time
		Class, Method string
		// Calls is the number of calls that ended in the cycle. Succeeded returned and Failed threw. All are at least
		// 0, and Succeeded plus Failed is at most Calls.
		Calls, Succeeded, Failed int64
		// Mean is the mean duration of the calls, at least 0, valid if HasMean. Min and Max are the shortest and the
		// longest duration, valid if HasRange.
		Mean, Min, Max    time.Duration
		HasMean, HasRange bool
		// Sum is the exact duration of all calls together, valid if HasSum. A server that reports it has a Mean too.
		Sum    time.Duration `json:",omitempty"`
		HasSum bool          `json:",omitempty"`
	}

	// Tree is one traced call with its callees.
	Tree struct {
		// Begin is the begin of the call. The zero value means that the server reports no clock: the tree then ends
		// when it is received.
		Begin time.Time `json:",omitzero"`
		// TraceID is the ID of the trace that the call belongs to; zero means none.
		TraceID [16]byte `json:",omitzero"`
		// ForeignTrace is an ID of the trace in another format; empty means none.
		ForeignTrace string `json:",omitempty"`
		Thread       Thread
		// Nodes are the calls in the order of their begin. The caller of a node is the nearest node before it with a
		// lower depth. There is at least one node, and the first has depth 0. With Arthas, others may have it too.
		Nodes []Node
		// Unended means that a call had not ended when the console wrote the tree. Its times and its callers are then
		// those of other calls.
		Unended bool `json:",omitempty"`
	}

	// Node is one call of a [Tree].
	Node struct {
		Depth int32
		// Start and End are offsets from the start of the tree, at least 0, with Start <= End. Greys measures whole
		// milliseconds. Estimated means that the server reports only the length, and another part chose the place.
		Start, End    time.Duration
		Estimated     bool `json:",omitempty"`
		Class, Method string
		// Line is the line of the call in the caller's source; 0 means unknown.
		Line int32
		// Throws is the type of the thrown object, and Message its message; empty means none, or unknown.
		Throws  string
		Message string `json:",omitempty"`
		// Threw means that the call threw, also if the type is unknown.
		Threw bool `json:",omitempty"`
		// Repeated means that the node stands for several calls of the caller; nil means one call. It stays valid.
		Repeated *Repeated `json:",omitempty"`
	}

	// Repeated describes several calls of one method. The durations are valid if HasTimes.
	Repeated struct {
		Calls                  int64
		Least, Greatest, Total time.Duration
		HasTimes               bool
	}

	// Thread is a thread of the program.
	Thread struct {
		Name     string
		ID       int64
		Daemon   bool
		Priority int32
	}

	// CallStack is the stack of one call of a method.
	CallStack struct {
		// Time is the time of the call. The zero value means that the server reports none.
		Time   time.Time `json:",omitzero"`
		Thread Thread
		// Frames are the frames of the stack. The called method is the first.
		Frames []Frame
		// TraceID and ForeignTrace are as in [Tree].
		TraceID      [16]byte `json:",omitzero"`
		ForeignTrace string   `json:",omitempty"`
	}

	// Frame is one frame of a [CallStack].
	Frame struct {
		Class, Method string
		// File is the name of the source file; empty means unknown.
		File string
		// Line is -1 if it is unknown, and -2 if the method is native.
		Line int32
	}

	// Watch is a value at a point of a call.
	Watch struct {
		// Time is the time of the point. The zero value means that the server reports no clock.
		Time          time.Time
		Class, Method string
		// Point is the server's name of the point. Value has lines.
		Point, Value string
		// TraceID and SpanID identify the span of the program's own tracer, during which the call was made. Zero means
		// unknown. ForeignTrace is an ID of the trace in another format; empty means none.
		TraceID      [16]byte `json:",omitzero"`
		SpanID       [8]byte  `json:",omitzero"`
		ForeignTrace string   `json:",omitempty"`
		// Cost is the duration of the call, valid if HasCost.
		Cost    time.Duration
		HasCost bool
	}

	// Record is a recorded call that has ended.
	Record struct {
		// Index is the server's index of the record. Process is the index of the call that contains it, or 0 if
		// unknown.
		Index, Process int64
		// Time is the end of the call by the server's clock. Greys has whole seconds. The zero value means that the server
		// reports no clock.
		Time time.Time
		// Cost is the duration of the call, at least 0. Greys has whole milliseconds. Untimed means that it is unknown.
		Cost            time.Duration
		Untimed         bool `json:",omitempty"`
		Returned, Threw bool
		// Object is the identity hash code of the receiver object as the server writes it, such as "0x4b1210ee"; empty
		// means none.
		Object string
		// Class is the qualified name, or the simple name if IsSimple.
		Class, Method string
		IsSimple      bool
	}

	// RecordDetail has all details of a recorded call.
	RecordDetail struct {
		Record
		// Parameters, Return and Exception are texts of Java objects, as the server writes them. An Exception in Java's
		// own format begins with the type.
		Parameters        []string
		Return, Exception string
		// Stack is the stack of the call, valid if HasStack.
		Stack    CallStack
		HasStack bool
	}

	// Class is a loaded class.
	Class struct {
		Name string
		// CodeSource is the location of the class file.
		CodeSource string
		// Kinds are words for the kind of class, by the methods of java.lang.Class: "interface", "annotation", "enum",
		// "anonymous-class", "array", "local-class", "member-class", "primitive", "synthetic".
		Kinds []string
		// Modifier is the server's text: words, or an undocumented number.
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
		// Value is the value of a static field, as the server writes it.
		Value string
	}

	// Method is a method of a loaded class.
	Method struct {
		// Class is the class that declares the method.
		Class, Name                         string
		Modifier                            string
		Annotations, Parameters, Exceptions []string
		Return                              string
	}
)

// DropTimes removes the times, because they may be false.
func (s *MethodStatistics) DropTimes() { s.HasMean, s.HasRange, s.HasSum = false, false, false }

// Total returns the duration of all calls together. It reports whether it is known.
func (s *MethodStatistics) Total() (seconds float64, known bool) {
	if s.HasSum {
		return s.Sum.Seconds(), true
	}
	return s.Mean.Seconds() * float64(s.Calls), s.HasMean || s.Calls == 0
}

func (*Version) reply()      {}
func (*Sessions) reply()     {}
func (*Affected) reply()     {}
func (*Statistics) reply()   {}
func (*Tree) reply()         {}
func (*CallStack) reply()    {}
func (*Watch) reply()        {}
func (*Record) reply()       {}
func (*RecordDetail) reply() {}
func (*Class) reply()        {}
func (*Method) reply()       {}

// SimpleName returns the name of a class without its package.
func SimpleName(class string) string {
	return class[strings.LastIndexByte(class, '.')+1:]
}
