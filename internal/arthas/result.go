// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Result is a part of what a server sends for a command: a pointer to one of the types of this file. It shares no memory
// with the answer.
type Result interface{ result() }

// The results of commands.
type (
	// Version is the version of Arthas, such as "4.3.4".
	Version struct{ Text string }

	// SessionState describes a session.
	SessionState struct {
		// ProcessID is the id of the Java process.
		ProcessID int64
		SessionID string
		UserID    string
	}

	// Affected is what instrumentation or its removal changed.
	Affected struct {
		Classes, Methods int64
		// Took is the time that it took, in whole milliseconds.
		Took time.Duration
	}

	// Enhanced means that the server instrumented classes, or why it did not.
	Enhanced struct {
		Affected
		Success bool
		Message string
		// OverLimit is the server's text if more classes match than the limit.
		OverLimit string
	}

	// Reset is the result of a [ResetCommand]. A class counts also if it stays instrumented, because a job runs.
	Reset struct{ Affected }

	// Monitor is the result of one cycle of a [MonitorCommand].
	Monitor struct{ Methods []MethodStatistics }

	// MethodStatistics are of all methods with one name, of all classes with one name, in one cycle.
	MethodStatistics struct {
		// Time is the end of the last call, not of the cycle.
		Time          Timestamp
		Class, Method string
		// Calls ended in the cycle: Succeeded returned and Failed threw.
		Calls, Succeeded, Failed int64
		// Sum is the sum of their durations.
		Sum Cost
	}

	// Trace is one traced call with its callees.
	Trace struct {
		// Time is the begin of the call.
		Time Timestamp
		// Thread has the ID 0 if it is not known.
		Thread javamethods.Thread
		// TraceID and RPCID are of a certain vendor's tracer, and usually empty.
		TraceID, RPCID string
		// Nodes are calls and thrown exceptions, each after its caller. The caller of a node is the nearest node before
		// it with a lower depth. A trace may have several nodes of depth 0.
		Nodes []TraceNode
	}

	// TraceNode is one node of a [Trace]. Only the whole trace has a time.
	TraceNode struct {
		Depth int32
		// Line is the line of the call in the caller's source; at most 0 means unknown.
		Line int32
		// Exception is the type of a thrown exception, with Message. Such a node has nothing else, except Depth and
		// Line.
		Exception, Message string
		Class, Method      string
		// CallSite means that the node is calls from one line of the caller. Otherwise it is the body of an instrumented
		// method. A pattern that matches both makes a body a child of its call site: both are the same call.
		CallSite bool
		// Throws means that the last call threw.
		Throws bool
		// Calls is the number of calls that the node stands for, at least 1: those of one method from one line.
		Calls int64
		// Last is the duration of the last of them. Min and Max are the shortest and the longest, and Total is the sum.
		Last, Min, Max, Total Cost
	}

	// CallStack is the stack of one call of a method.
	CallStack struct {
		Time           Timestamp
		Thread         javamethods.Thread
		TraceID, RPCID string
		// Frames are the frames of the stack. The called method is the first.
		Frames []javamethods.Frame
	}

	// Watch is one point of one call.
	Watch struct {
		Time          Timestamp
		Cost          Cost
		Class, Method string
		// Point is the server's name of the point, such as "AtExit" and "AtExceptionExit".
		Point string
		// Value is drawn by the server, in lines.
		Value string
	}

	// Records are recorded calls.
	Records struct{ Calls []Record }

	// Record is a recorded call.
	Record struct {
		Index           int32
		Time            Timestamp
		Cost            Cost
		Returned, Threw bool
		// Object is the identity hash code of the object, such as "0x6f49626f".
		Object        string
		Class, Method string
		// Parameters are JSON, or drawn by the server. Return and Exception are drawn by the server.
		Parameters        []string
		Return, Exception string
	}

	// Classes are loaded classes: names, or one class with details.
	Classes struct {
		Names  []string
		Detail *Class
	}

	// Class is a loaded class.
	Class struct {
		Name, CodeSource, Modifier string
		// LoaderHash identifies the class loader.
		LoaderHash string
		// Loaders are the class loader and its parents.
		Loaders, Interfaces, Supers []string
		Interface, Synthetic        bool
	}

	// Method is a method of a loaded class.
	Method struct {
		Class, Name string
		// Descriptor is the JVM's descriptor of parameters and returned type.
		Descriptor           string
		Constructor          bool
		Modifier, ReturnType string
		Parameters           []string
	}

	// Memory is the memory of the program.
	Memory struct{ Pools []MemoryPool }

	// MemoryPool is one pool. The pools with the name of their kind are sums.
	MemoryPool struct {
		// Kind is "heap", "nonheap" or "buffer_pool".
		Kind, Name string
		// Used, Committed and Max are bytes.
		Used, Committed, Max int64
		// HasMax is false if the pool has no limit.
		HasMax bool
	}

	// GarbageCollector has the collections since the JVM started.
	GarbageCollector struct {
		Name        string
		Collections int64
		Time        time.Duration
	}

	// Runtime describes the JVM.
	Runtime struct {
		OSName, OSVersion, JavaVersion, JavaHome string
		Processors                               int64
		// LoadAverage is valid if HasLoadAverage.
		LoadAverage    float64
		HasLoadAverage bool
		// Uptime is in whole seconds. Time is the instant of the result.
		Uptime time.Duration
		Time   time.Time
	}

	// Dashboard is the result of one interval of a [DashboardCommand].
	Dashboard struct {
		Threads    []ThreadState
		Pools      []MemoryPool
		Collectors []GarbageCollector
		Runtime    Runtime
	}

	// Threads are threads of the program.
	Threads struct {
		Threads []ThreadState
		// States are the numbers of threads by the name of their state.
		States map[string]int64
	}

	// ThreadState is a thread with its activity. Threads of the JVM itself have a name and CPU only.
	ThreadState struct {
		// ID is -1 for threads of the JVM itself.
		ID                 int64
		Name, Group, State string
		Daemon             bool
		Priority           int32
		// CPU is the part of one processor in percent, over the time since the sample before.
		CPU float64
		// CPUTime is the time on a processor since the thread began, in whole milliseconds.
		CPUTime Cost
		// Frames are its stack, if the command asks for it.
		Frames []javamethods.Frame
	}

	// JVM is the result of a [JVMCommand].
	JVM struct{ Properties []Property }

	// Property is a property of the JVM.
	Property struct {
		// Group is such as "RUNTIME". Description often has the unit.
		Group, Name, Description string
		// JSON is the value.
		JSON string
	}

	// Profiler is the result of commands of the profiler.
	Profiler struct {
		Action string
		// Text is the profiler's answer, or the stacks.
		Text string
		// Cut is the number of bytes of the stacks that were dropped, because they were too long.
		Cut int64
		// File is the name of the file with the profile, on the host of the program.
		File, Format string
	}

	// Rows is the number of rows that a command found or changed.
	Rows struct{ Count int64 }

	// Message is a text of the server.
	Message struct{ Text string }

	// Malformed stands for a result of a known type that is not what Arthas sends. The results beside it are valid.
	Malformed struct {
		Type string
		Err  error
	}
)

// The results that tell the state of a session. A [Session] acts on them, and does not return them.
type (
	welcome struct {
		processID          int64
		version, mainClass string
		time               Timestamp
	}
	commandEcho struct{ message string }
	status      struct {
		code    int32
		message string
	}
	inputStatus struct{ value string }
	shutdown    struct{ message string }
)

func (*Version) result()      {}
func (*SessionState) result() {}
func (*Enhanced) result()     {}
func (*Reset) result()        {}
func (*Monitor) result()      {}
func (*Trace) result()        {}
func (*CallStack) result()    {}
func (*Watch) result()        {}
func (*Records) result()      {}
func (*Classes) result()      {}
func (*Method) result()       {}
func (*Memory) result()       {}
func (*Dashboard) result()    {}
func (*Threads) result()      {}
func (*JVM) result()          {}
func (*Profiler) result()     {}
func (*Rows) result()         {}
func (*Message) result()      {}
func (*Malformed) result()    {}
func (*welcome) result()      {}
func (*commandEcho) result()  {}
func (*status) result()       {}
func (*inputStatus) result()  {}
func (*shutdown) result()     {}
